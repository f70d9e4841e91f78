"""What one way of running a convolution's pass takes: time by CUDA events on a GPU, and workspace."""

from __future__ import annotations

import concurrent.futures
import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable

import torch

ITEM_SECONDS = 0.05
"""For repeating one way of one pass."""
MOST_REPEATS = 10
HEAD_START_CYCLES = 2_000_000
"""For which a GPU is kept busy, about 1 ms, while the host issues what is timed: else short passes would be timed with
the time that issuing them takes."""


@dataclass(frozen=True)
class Way:
    """One way to run a pass. `run` runs it once and returns its result."""

    name: str
    kind: str
    run: Callable[[], Any]
    settings: Callable[[], Any]
    workspace: int | None = None
    """Bytes; None: to be measured."""


def timed(way: Way, device: Any, end: float) -> dict[str, int]:
    """Median of some runs and the workspace, for the report; `end`: until when, by the monotonic clock."""
    if device.type == "cuda":
        # In each of its threads PyTorch keeps what cuDNN once chose for a shape, by its heuristics or by a search, and
        # takes it whatever cudnn.benchmark says by then: only a new thread chooses anew.
        with concurrent.futures.ThreadPoolExecutor(1) as alone:
            times, workspace = alone.submit(_timed_on_gpu, way, device, end).result()
    else:
        times, workspace = _timed_on_cpu(way, end), way.workspace or 0
    return {"timeNanoseconds": max(1, round(statistics.median(times))), "workspaceBytes": int(workspace)}


def _timed_on_cpu(way: Way, end: float) -> list[int]:
    with way.settings():
        once = _nanoseconds(way.run)  # warms up
        return [_nanoseconds(way.run) for _ in range(_repeats(once, end))]


def _timed_on_gpu(way: Way, device: Any, end: float) -> tuple[list[int], int]:
    with torch.cuda.device(device), way.settings():
        way.run()  # with cudnn.benchmark it searches
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter_ns()
        result = way.run()
        torch.cuda.synchronize()
        once = time.perf_counter_ns() - began
        workspace = way.workspace
        if workspace is None:
            workspace = max(0, torch.cuda.max_memory_allocated() - before - _bytes(result))
        del result
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(_repeats(once, end) + 1)]
        torch.cuda._sleep(HEAD_START_CYCLES)
        marks[0].record()
        for mark in marks[1:]:
            way.run()
            mark.record()
        torch.cuda.synchronize()
        return [int(marks[i].elapsed_time(marks[i + 1]) * 1e6) for i in range(len(marks) - 1)], workspace


def _repeats(once_nanoseconds: int, end: float) -> int:
    seconds = min(ITEM_SECONDS, max(0.0, end - time.monotonic()))
    return max(1, min(MOST_REPEATS, int(seconds * 1e9 / max(1000, once_nanoseconds))))


def _nanoseconds(run: Callable[[], Any]) -> int:
    began = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - began


def _bytes(result: Any) -> int:
    tensors = result if isinstance(result, (tuple, list)) else [result]
    return sum(each.numel() * each.element_size() for each in tensors if isinstance(each, torch.Tensor))
