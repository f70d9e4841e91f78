"""PyTorch 1.13 and later: iterations from `DataLoader` and `torch.optim`, time by CUDA events on a GPU.

`nn.Module` is left alone: hooks there cost too much and break `torch.compile(fullgraph=True)`.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from typing import Any, Callable

import torch
import torch.utils.data
from torch.utils.data import dataloader

from muster_profiler import host
from muster_profiler.frameworks import Events, Pretence, torch_batches, torch_parameters


def create() -> Torch:
    return Torch()


class _Source:
    """One iterator of a DataLoader."""

    def __init__(self, iterator: Any) -> None:
        self.iterator = weakref.ref(iterator)
        self.dataset = iterator._dataset  # held, so that its id stays its own
        self.key = id(self.dataset)
        self.repeated = 0
        self.workers = int(getattr(iterator, "_num_workers", 0))
        self.prefetched = self.workers * int(getattr(iterator, "_prefetch_factor", None) or 2)
        self.batch_size: int | None = None
        self.samples: int | None = None
        self.length: int | None = None
        if iterator._dataset_kind == dataloader._DatasetKind.Map:
            with contextlib.suppress(TypeError, NotImplementedError):  # a sampler without an end
                self.length = len(iterator)

    @property
    def position(self) -> int:
        iterator = self.iterator()
        return self.repeated + (iterator._num_yielded if iterator is not None else 0)


class Torch:
    """See `frameworks.Framework`."""

    name = "PyTorch"
    version = str(torch.__version__)

    def __init__(self) -> None:
        self.optimizers: dict[int, Any] = {}
        self.with_gradient: dict[int, Any] = {}
        self.training_device: Any = None
        self.made = 0
        self.steps: dict[int, int] = {}

    # ---- events

    def install(self, events: Events) -> None:
        self._hook_loader(events)
        self._hook_optimizers(events)
        original = torch.autograd.backward

        def backward(*args: Any, **kwargs: Any) -> Any:
            events.backward()
            return original(*args, **kwargs)

        torch.autograd.backward = backward

    def _hook_loader(self, events: Events) -> None:
        base = dataloader._BaseDataLoaderIter
        plain_next, plain_reset, plain_init = base.__next__, base._reset, base.__init__

        def __init__(iterator: Any, loader: Any) -> None:
            plain_init(iterator, loader)
            iterator._muster_source = source = _Source(iterator)
            source.batch_size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
            if loader.batch_sampler is not None and source.length is not None:
                source.samples = len(loader.sampler)
            if not source.workers:
                iterator._collate_fn = _timed(iterator._collate_fn, events.collated)

        def __next__(iterator: Any) -> Any:
            return events.fetch(iterator._muster_source, lambda: plain_next(iterator))

        def _reset(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            source = getattr(iterator, "_muster_source", None)
            if source is not None:
                source.repeated = 0
            return plain_reset(iterator, *args, **kwargs)

        base.__init__, base.__next__, base._reset = __init__, __next__, _reset

    def _hook_optimizers(self, events: Events) -> None:
        def begin(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            self._note_gradients(optimizer)
            events.step_begin(optimizer)

        def end(optimizer: Any, args: Any, kwargs: Any) -> None:
            closure = any(callable(value) for value in args[1:2]) or callable(kwargs.get("closure"))
            if closure:
                self._note_gradients(optimizer)
            events.step_end(closure)

        plain_init = torch.optim.Optimizer.__init__

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self.made += 1
            plain_init(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = __init__
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        except ImportError:  # torch 1.13 has no such hooks
            _wrap_steps(begin, end)
        else:
            register_optimizer_step_pre_hook(begin)
            register_optimizer_step_post_hook(end)

    def _note_gradients(self, optimizer: Any) -> None:
        """In each optimiser's first steps: which of its parameters get a gradient, and where they lie."""
        self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1
        if self.steps[id(optimizer)] > 8:
            return
        self.optimizers.setdefault(id(optimizer), optimizer)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.with_gradient.setdefault(id(parameter), parameter)
                if self.training_device is None or parameter.device.type != "cpu":
                    self.training_device = parameter.device

    def optimizers_exist(self) -> bool:
        return self.made > 0

    def rank(self) -> int:
        return host.rank() if not _distributed() else int(torch.distributed.get_rank())

    def world(self) -> int:
        return host.world() if not _distributed() else int(torch.distributed.get_world_size())

    # ---- time

    def mark(self) -> Any:
        event = None
        if self.resident_differs():
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self.training_device))  # which need not be the current device
        return time.perf_counter_ns(), event

    def nanoseconds(self, begin: Any, end: Any, own: int) -> int:
        if begin[1] is None or end[1] is None:
            return int(end[0] - begin[0] - own)
        begin[1].synchronize()  # it may lie on another stream
        end[1].synchronize()
        return int(begin[1].elapsed_time(end[1]) * 1e6)

    def host_seconds(self, begin: Any, end: Any) -> float:
        return float(end[0] - begin[0]) / 1e9

    # ---- batches

    def keep(self, batch: Any) -> torch_batches.Kept:
        return torch_batches.Kept(batch, lambda: self.training_device)

    def resident_differs(self) -> bool:
        return self.training_device is not None and self.training_device.type == "cuda"

    # ---- device, parameters, memory

    def device(self) -> dict[str, Any]:
        if not self.resident_differs():
            return host.device()
        properties = torch.cuda.get_device_properties(self.training_device)
        count = torch.cuda.device_count()
        return {"kind": "cuda", "name": properties.name, "memoryBytes": properties.total_memory, "count": count}

    def parameters(self) -> dict[str, Any]:
        return torch_parameters.describe(list(self.optimizers.values()), self.with_gradient)

    def restart_peak(self) -> None:
        if self.resident_differs():
            torch.cuda.synchronize(self.training_device)
            torch.cuda.reset_peak_memory_stats(self.training_device)
        else:
            host.restart_peak()

    def peak(self) -> int:
        if self.resident_differs():
            torch.cuda.synchronize(self.training_device)
            return int(torch.cuda.max_memory_allocated(self.training_device))
        return host.peak()

    def memory_facts(self) -> dict[str, int]:
        if not self.resident_differs():
            return {}
        free, total = torch.cuda.mem_get_info(self.training_device)
        stats = torch.cuda.memory_stats(self.training_device)
        reserved = int(stats.get("reserved_bytes.all.current", 0))
        return {
            "reservedPeakBytes": int(stats.get("reserved_bytes.all.peak", 0)),
            "outsideBytes": max(0, int(total - free) - reserved),  # the context, libraries, other processes
            "retries": int(stats.get("num_alloc_retries", 0)),
            "outOfMemory": int(stats.get("num_ooms", 0)),
        }

    def pretend(self) -> Pretence | None:
        from muster_profiler.frameworks import torch_pretend

        return torch_pretend.begin(self.training_device)

    # ---- convolutions

    def convolutional(self) -> bool:
        return any(parameter.dim() >= 3 for parameter in self.with_gradient.values())

    def watch_convolutions(self) -> Any:
        from muster_profiler.frameworks import torch_convolutions

        return torch_convolutions.Watch().__enter__()

    def convolutions(self, watch: Any, seconds: float) -> dict[str, Any]:
        from muster_profiler.frameworks import torch_convolutions

        watch.__exit__(None, None, None)
        return torch_convolutions.measure(watch.passes, seconds)

    def switch(self, setting: str) -> None:
        if setting == "cudnn.benchmark":
            torch.backends.cudnn.benchmark = True
        elif setting == "channels_last":
            for parameter in self.with_gradient.values():
                if parameter.dim() == 4:
                    parameter.data = _channels_last(parameter.data)
                    if parameter.grad is not None:
                        parameter.grad = _channels_last(parameter.grad)
            for optimizer in self.optimizers.values():  # its steps are slower where its state lies otherwise
                for state in optimizer.state.values():
                    for key, value in state.items():
                        if isinstance(value, torch.Tensor) and value.dim() == 4:
                            state[key] = _channels_last(value)

    def environment(self) -> dict[str, str]:
        facts = dict(host.environment(), torch=self.version, threads=str(torch.get_num_threads()))
        if self.resident_differs():
            facts["cuda"] = str(torch.version.cuda)
            facts["cudnn"] = str(torch.backends.cudnn.version())
            facts["cudnnBenchmark"] = str(torch.backends.cudnn.benchmark)
        return facts

    def warnings(self) -> list[dict[str, str]]:
        warnings = []
        if not self.resident_differs() and torch.cuda.is_available():
            text = "A GPU is there, but the script trains on the CPU: the times are the CPU's."
            warnings.append({"reason": "GpuUnused", "message": text})
        return warnings


def _distributed() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _timed(collate: Callable[[Any], Any], tell: Callable[[int], None]) -> Callable[[Any], Any]:
    def collate_fn(samples: Any) -> Any:
        began = time.perf_counter_ns()
        batch = collate(samples)
        tell(time.perf_counter_ns() - began)
        return batch

    return collate_fn


def _channels_last(tensor: Any) -> Any:
    return tensor.contiguous(memory_format=torch.channels_last)


def _wrap_steps(begin: Callable[[Any, Any, Any], None], end: Callable[[Any, Any, Any], None]) -> None:
    """Torch 1.13: wrap each optimiser class's `step` when its first instance is made."""
    plain = torch.optim.Optimizer._hook_for_profile

    def _hook_for_profile(optimizer: Any) -> None:
        plain(optimizer)
        kind = type(optimizer)
        step = kind.step
        if getattr(step, "muster", False):
            return

        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            begin(self, args, kwargs)
            result = step(self, *args, **kwargs)
            end(self, args, kwargs)
            return result

        wrapper.hooked = wrapper.muster = True  # type: ignore[attr-defined]
        kind.step = wrapper

    torch.optim.Optimizer._hook_for_profile = _hook_for_profile
