"""A PyTorch script on fake tensors, and the memory that it would take.

Fake tensors (`FakeTensorMode`) know shape, dtype and device. Real ones that the script holds, such as its model, are
taken as fake in each operation, so only what counts something is changed. `torch.distributed._tools.MemTracker` counts
storages in the same way, but wants the model and the optimiser handed over; here only the script knows them.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import threading
import weakref
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

ROUNDING = 512
"""Bytes to which allocators round."""
VALUE = torch.ops.aten._local_scalar_dense.default


def begin(device: Any) -> TorchPretence | None:
    """Begin to pretend in this thread.

    :param device: whose memory is counted
    :returns: None where it would tell nothing true (compiled code takes other memory) or do harm (other ranks wait)
    """
    compiled = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {}).get("stats")
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return None if compiled or distributed or not _seen_to_go() else TorchPretence(device)


def _seen_to_go() -> bool:
    """Whether a storage's Python object lives as long as the storage (torch 2.1 and later)."""
    tensor = torch.empty(1)
    seen = weakref.ref(tensor.untyped_storage())
    return seen() is not None


class TorchPretence:
    """See `frameworks.Pretence`."""

    def __init__(self, device: Any) -> None:
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.count = _Count(device or torch.device("cpu"))
        self.over = False
        self._save_nothing()
        self.fake.__enter__()
        self.count.__enter__()

    def batch(self, outline: Any, samples: int, wanted: int) -> Any:
        memo = {}
        for tensor, device, gradient in outline.tensors:
            sizes = [wanted, *tensor.shape[1:]] if tensor.dim() and tensor.shape[0] == samples else tensor.shape
            memo[id(tensor)] = torch.empty(sizes, dtype=tensor.dtype, device=device).requires_grad_(gradient)
        return copy.deepcopy(outline.shape, memo)

    def _save_nothing(self) -> None:
        """`torch.save` in this thread, by whatever name the script has it, opens files in ways that Python's audit
        cannot see. Meanwhile it leaves them as they are; afterwards it refuses, so that no empty file is moved
        anywhere."""
        module, thread = torch.serialization, threading.get_ident()
        plain_open, plain_save = module._open_zipfile_writer, module._save

        def _open_zipfile_writer(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return plain_open(*args, **kwargs)
            if self.over:
                raise PermissionError("after a profile has estimated memory, the script can save nothing")
            return contextlib.nullcontext()

        def _save(*args: Any, **kwargs: Any) -> Any:
            return plain_save(*args, **kwargs) if threading.get_ident() != thread else None

        module._open_zipfile_writer, module._save = _open_zipfile_writer, _save

    def restart_peak(self) -> None:
        self.count.peak = self.count.bytes

    def peak(self) -> int:
        return self.count.peak

    def end(self) -> None:
        self.over = True
        self.count.__exit__(None, None, None)
        self.fake.__exit__(None, None, None)


class _Count(TorchDispatchMode):  # type: ignore[misc]
    """Bytes of a device's storages that were made since it was entered and still live."""

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = device
        self.bytes = self.peak = 0
        self.sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
        real = given and not any(isinstance(each, FakeTensor) for each in given)
        if func is VALUE:
            return self._really(func, args, kwargs) if real else _nothing(given[0].dtype)
        result = func(*args, **kwargs)
        made = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
        if real and made and not any(each.dim() or each.is_cuda for each in [*given, *made]):
            return self._really(func, args, kwargs)  # counters, such as an optimiser's steps: scripts branch on them
        for each in made:
            if isinstance(each, FakeTensor) and each.device == self.device:
                self._made(each.untyped_storage())
        return result

    @staticmethod
    def _really(func: Any, args: Any, kwargs: Any) -> Any:
        with _disable_current_modes():
            return func(*args, **kwargs)

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


def _nothing(dtype: Any) -> bool | float | int:
    """The value of a number that has none."""
    return False if dtype == torch.bool else 0.0 if dtype.is_floating_point else 0
