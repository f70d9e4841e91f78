"""Batches of PyTorch tensors, kept as they were when the loader made them, to be handed out again."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Callable, Iterator

import torch


@dataclasses.dataclass
class Outline:
    """A deep copy of a batch whose tensors have no data; each of them with its device, and whether it has gradients."""

    shape: Any
    tensors: list[tuple[Any, Any, bool]]


class Kept:
    """See `frameworks.Kept`."""

    def __init__(self, batch: Any, device: Callable[[], Any]) -> None:
        """
        :param device: tells where the script trains, which is not known before its first step
        :raises Exception: the batch is of a kind that cannot be copied
        """
        memo: dict[int, Any] = {}
        self.tensors: list[Any] = []
        for tensor in _tensors(batch):
            if id(tensor) not in memo:
                memo[id(tensor)] = _clone(tensor)
                self.tensors.append(memo[id(tensor)])
        self.shape = copy.deepcopy(batch, memo)
        """Holds `tensors`."""
        self.device = device
        self.live: dict[bool, list[Any]] = {}
        """What the script gets, on its place and on the device, and the version of each when it got it."""
        self.versions: dict[bool, list[int]] = {}

    @property
    def bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors)

    @property
    def samples(self) -> int | None:
        return next((int(tensor.shape[0]) for tensor in self.tensors if tensor.dim()), None)

    def outline(self) -> Outline:
        memo = {id(tensor): tensor.detach().to("meta") for tensor in self.tensors}
        places = [(memo[id(tensor)], tensor.device, tensor.requires_grad) for tensor in self.tensors]
        return Outline(copy.deepcopy(self.shape, dict(memo)), places)

    def again(self, resident: bool) -> Any:
        live = self.live.setdefault(resident, [None] * len(self.tensors))
        versions = self.versions.setdefault(resident, [0] * len(self.tensors))
        for index, tensor in enumerate(self.tensors):
            current = live[index]
            if current is None or current._version != versions[index] or current.requires_grad != tensor.requires_grad:
                live[index] = tensor.to(self.device()) if resident else _clone(tensor)
                versions[index] = live[index]._version
        return copy.deepcopy(self.shape, {id(tensor): fresh for tensor, fresh in zip(self.tensors, live)})


def _clone(tensor: Any) -> Any:
    clone = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    return clone.pin_memory() if tensor.device.type == "cpu" and tensor.is_pinned() else clone


def _tensors(batch: Any, depth: int = 0) -> Iterator[Any]:
    """The tensors of a batch, as deep as batches go: containers and plain objects."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif depth < 6:
        if isinstance(batch, dict):
            parts: Any = batch.values()
        elif isinstance(batch, (list, tuple)):
            parts = batch
        else:
            parts = vars(batch).values() if hasattr(batch, "__dict__") and not isinstance(batch, type) else ()
        for part in parts:
            yield from _tensors(part, depth + 1)
