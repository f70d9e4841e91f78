"""A training script whose times are known: the loader sleeps `load` ms a batch, the compute `compute` ms.

Arguments: compute and load in milliseconds, loader workers, iterations. Prints the median of its own iteration times,
of their parts after the fetch, and of the processor time that an iteration takes, in nanoseconds: what it costs by
itself, and what watching it costs.
"""

import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

compute, load = float(sys.argv[1]) / 1e3, float(sys.argv[2]) / 1e3
workers, iterations = int(sys.argv[3]), int(sys.argv[4])


class Slow(Dataset):  # type: ignore[misc]
    """Samples that take their time."""

    def __len__(self) -> int:
        return iterations

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(load)
        return torch.zeros(8)


if __name__ == "__main__":
    weight = torch.nn.Parameter(torch.zeros(8, 1))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    times, computes, processor, began, used = [], [], [], time.perf_counter_ns(), time.thread_time_ns()
    for batch in DataLoader(Slow(), batch_size=None, num_workers=workers):
        fetched = time.perf_counter_ns()
        optimizer.zero_grad()
        (batch @ weight).sum().backward()
        time.sleep(compute)
        optimizer.step()
        now = time.perf_counter_ns()
        times.append(now - began)
        computes.append(now - fetched)
        began = now
        now_used = time.thread_time_ns()
        processor.append(now_used - used)
        used = now_used
    middle = statistics.mean if workers > 1 else statistics.median  # several workers deliver in bursts
    print("middle", middle(times[10:]), statistics.median(computes[10:]), statistics.median(processor[10:]))
