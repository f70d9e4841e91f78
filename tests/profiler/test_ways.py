"""How one way of a convolution's pass is timed: on a GPU that is made up, and where one of several fails."""

import contextlib
import threading
import time

import pytest
import torch
from muster_profiler.frameworks import torch_convolutions, torch_way
from muster_profiler.frameworks.torch_convolutions import Shape
from muster_profiler.frameworks.torch_way import Way


class Gpu:
    """Its clock goes on by what is run: the first run searches for 1000 ms, the others take 3."""

    def __init__(self):
        self.milliseconds, self.runs, self.allocated, self.peak, self.threads = 0.0, 0, 500, 500, set()

    def run(self):
        self.threads.add(threading.get_ident())
        self.milliseconds += 3 if self.runs else 1000
        self.runs += 1
        self.peak = max(self.peak, self.allocated + 4096 + 400)
        return torch.zeros(100)

    def reset(self):
        self.peak = self.allocated

    def event(self, *, enable_timing):
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.at = self.gpu.milliseconds

    def elapsed_time(self, other):
        return other.at - self.at


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    monkeypatch.setattr(torch.cuda, "device", lambda _device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _cycles: None)
    monkeypatch.setattr(torch.cuda, "Event", made.event)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: made.allocated)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: made.peak)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", made.reset)
    return made


def timed(gpu, workspace=None):
    way = Way("Cudnn", "cuDNN", gpu.run, contextlib.nullcontext, workspace)
    return torch_way.timed(way, torch.device("cuda", 0), time.monotonic() + 60)


def test_on_a_gpu_the_search_is_not_timed_and_the_workspace_is_what_the_result_is_not(gpu):
    assert timed(gpu) == {"timeNanoseconds": 3_000_000, "workspaceBytes": 4096}
    assert timed(gpu, workspace=77)["workspaceBytes"] == 77


def test_each_way_on_a_gpu_runs_in_a_thread_that_has_chosen_nothing_yet(gpu):
    timed(gpu)
    timed(gpu)

    assert threading.get_ident() not in gpu.threads
    assert gpu.threads


def test_a_way_that_fails_is_told_and_takes_no_other_along(monkeypatch):
    plain = torch_convolutions.timed

    def failing(way, device, end):
        if way.name == "Mkldnn":
            raise RuntimeError("CUDA out of memory. Tried to allocate\nmore")
        return plain(way, device, end)

    monkeypatch.setattr(torch_convolutions, "timed", failing)
    square = (1, 1), (0, 0), (1, 1)
    shape = Shape((2, 3, 8, 8), (4, 3, 1, 1), (2, 4, 8, 8), *square, False, (0, 0), 1, torch.float32,
                  torch.device("cpu"), False)  # fmt: skip

    found = torch_convolutions.measure({(shape, "forward"): 1}, 30.0)

    names = [each["name"] for each in found["rows"][0]["algorithms"]]
    assert "Mkldnn" not in names
    assert len(names) >= 2
    assert found["troubles"] == [f"{shape.text}, forward, Mkldnn: CUDA out of memory. Tried to allocate"]
