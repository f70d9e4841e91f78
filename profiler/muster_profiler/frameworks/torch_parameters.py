"""Which tensors a PyTorch script learns, in the model's own order, and how many bytes of them are exchanged."""

from __future__ import annotations

import gc
from typing import Any

import torch

WRAPPERS = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_forward_module.")
"""Prefixes that DDP, torch.compile, FSDP and Lightning's Fabric put before the names of the wrapped model."""


def describe(optimizers: list[Any], with_gradient: dict[int, Any]) -> dict[str, Any]:
    """The report's `parameters`. Tied weights count once, frozen ones are listed and not exchanged.

    :param optimizers: those that stepped
    :param with_gradient: by id, the parameters that were seen with a gradient; empty if none could be seen
    """
    stepped = {id(p): p for o in optimizers for group in o.param_groups for p in group["params"]}
    tensors, total = [], 0
    places: set[tuple[int, int]] = set()
    for name, parameter in _named(stepped):
        place = (parameter.data_ptr(), parameter.numel())
        if place in places and place[0]:
            continue
        places.add(place)
        trainable = parameter.requires_grad and (not stepped or id(parameter) in stepped)
        if with_gradient:
            trainable = trainable and id(parameter) in with_gradient
        gradient = getattr(with_gradient.get(id(parameter)), "grad", None)
        size = parameter.numel() * (gradient if gradient is not None else parameter).element_size()
        total += parameter.numel() * parameter.element_size()
        tensors.append(
            {"name": name[-512:], "elements": parameter.numel(), "bytes": size, "trainable": bool(trainable)}
        )
    exchanged = sum(tensor["bytes"] for tensor in tensors if tensor["trainable"])
    return {"bytes": total, "exchangedBytes": exchanged, "tensors": tensors}


def _named(stepped: dict[int, Any]) -> list[tuple[str, Any]]:
    """Names by the modules that hold the parameters; what no module holds is named by its place in the optimiser."""
    modules = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module)]
    inner = {id(child) for module in modules for child in module._modules.values() if child is not None}
    named: list[tuple[str, Any]] = []
    seen: set[int] = set()
    for module in modules:
        if id(module) in inner:
            continue
        parameters = list(module.named_parameters())
        if stepped and not any(id(parameter) in stepped for _, parameter in parameters):
            continue
        for name, parameter in parameters:
            if id(parameter) not in seen:
                seen.add(id(parameter))
                named.append((_plain(name), parameter))
    named += [("parameter.%d" % i, p) for i, (key, p) in enumerate(stepped.items()) if key not in seen]
    return named


def _plain(name: str) -> str:
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "") if wrapper != "module." else (name[7:] if name.startswith(wrapper) else name)
    return name
