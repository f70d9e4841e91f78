"""A PyTorch script on fake tensors, and the memory that it would take.

Fake tensors (`FakeTensorMode`) know shape, dtype and device. Real ones that the script holds, such as its model, are
taken as fake in each operation, so nothing changes them. `torch.distributed._tools.MemTracker` counts storages in the
same way, but wants the model and the optimiser handed over; here only the script knows them.
"""

from __future__ import annotations

import copy
import sys
import weakref
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

ROUNDING = 512
"""Bytes to which allocators round."""
VALUE = torch.ops.aten._local_scalar_dense.default


def begin(parameters: list[Any]) -> TorchPretence | None:
    """Begin to pretend in this thread.

    :param parameters: those whose gradients will be taken away at the end if they are fake
    :returns: None where it would tell nothing true (compiled code takes other memory) or do harm (other ranks wait)
    """
    compiled = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("stats")
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return None if compiled or distributed or not _seen_to_go() else TorchPretence(parameters)


def _seen_to_go() -> bool:
    """Whether a storage's Python object lives as long as the storage (torch 2.1 and later)."""
    tensor = torch.empty(1)
    seen = weakref.ref(tensor.untyped_storage())
    return seen() is not None


class TorchPretence:
    """See `frameworks.Pretence`."""

    def __init__(self, parameters: list[Any]) -> None:
        self.parameters = parameters
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.count = _Count()
        self.save, torch.save = torch.save, _save_nothing
        self.fake.__enter__()
        self.count.__enter__()

    def batch(self, outline: Any, samples: int, wanted: int) -> Any:
        memo = {}
        for tensor, device, gradient in outline.tensors:
            sizes = [wanted, *tensor.shape[1:]] if tensor.dim() and tensor.shape[0] == samples else tensor.shape
            memo[id(tensor)] = torch.empty(sizes, dtype=tensor.dtype, device=device).requires_grad_(gradient)
        return copy.deepcopy(outline.shape, memo)

    def restart_peak(self) -> None:
        self.count.peak = self.count.bytes

    def peak(self) -> int:
        return self.count.peak

    def end(self) -> None:
        self.count.__exit__(None, None, None)
        self.fake.__exit__(None, None, None)
        torch.save = self.save
        for parameter in self.parameters:
            if isinstance(parameter.grad, FakeTensor):
                parameter.grad = None


def _save_nothing(*_args: Any, **_kwargs: Any) -> None:
    """In the place of `torch.save`: it would leave a file without weights, in ways that Python's audit cannot see."""


class _Count(TorchDispatchMode):  # type: ignore[misc]
    """Bytes of the storages that were made since it was entered and still live."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.peak = 0
        self.sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [each for each in tree_flatten((args, kwargs or {}))[0] if isinstance(each, torch.Tensor)]
        if given and not any(isinstance(each, FakeTensor) or each.dim() or each.is_cuda for each in given):
            with _disable_current_modes():  # counters, such as an optimiser's steps: scripts branch on them
                return func(*args, **(kwargs or {}))
        if func is VALUE:
            kind = given[0].dtype
            return False if kind == torch.bool else 0.0 if kind.is_floating_point else 0
        result = func(*args, **(kwargs or {}))
        for each in tree_flatten(result)[0]:
            if isinstance(each, FakeTensor):
                self._made(each.untyped_storage())
        return result

    def _made(self, storage: Any) -> None:
        key = storage._cdata
        if key in self.sizes:
            return
        self.sizes[key] = size = -(-int(storage.nbytes()) // ROUNDING) * ROUNDING
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(storage, self._gone, key).atexit = False

    def _gone(self, key: int) -> None:
        self.bytes -= self.sizes.pop(key, 0)
