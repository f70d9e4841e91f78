"""A small image classifier on generated pictures. Arguments: mini-batch, or several with commas between, one after the
other; optionally `channels_last`, for the model in that memory format; optionally `truth`, to run 12 iterations of each
and print, a line each, samples per second and the peak of resident memory in bytes over the last of them.
"""

import resource
import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

truth = "truth" in sys.argv


class Pictures(Dataset):  # type: ignore[misc]
    """Squares and noise, made as they are asked for."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(index))
        picture[:, index % 16 : index % 16 + 16, 8:24] += index % 10 / 5
        return picture, index % 10


def train(batch: int) -> None:
    """Without end, or for 12 iterations."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(64, 64, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(64 * 64, 256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, 10),
    )
    if "channels_last" in sys.argv:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    times, began = [], time.perf_counter()
    for count, (pictures, labels) in enumerate(DataLoader(Pictures(), batch_size=batch), 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        times.append(now - began)
        began = now
        if truth and count == 12:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print("truth", batch / statistics.median(times[3:]), peak)
            break


for mini_batch in sys.argv[1].split(","):
    train(int(mini_batch))
