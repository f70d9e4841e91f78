"""Every convolution that an iteration of a PyTorch script runs, and what each of its passes costs by each way there is.

The shapes are seen below autograd and autocast, in one iteration that is not timed: as they really run, with their
precision and memory format. The ways are those between which PyTorch can choose on the device; on a GPU whose image has
NVIDIA's cuDNN front end, every execution plan of cuDNN is one (see `torch_cudnn`).
"""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from muster_profiler.frameworks import torch_cudnn
from muster_profiler.frameworks.torch_way import Way, timed

DIRECTIONS = ("forward", "inputGradient", "weightGradient")
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


@dataclass(frozen=True)
class Shape:
    """One distinct convolution. Sizes as PyTorch gives them: batch, channels, space."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    output: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    dtype: Any
    device: Any
    channels_last: bool

    @property
    def text(self) -> str:
        """For people, and as the report's key."""
        parts = [
            "%s %s" % ("transposed" if self.transposed else "input", _by(self.input)),
            "kernel " + _by(self.weight),
        ]
        for name, value, usual in (
            ("stride", self.stride, 1),
            ("padding", self.padding, 0),
            ("dilation", self.dilation, 1),
        ):
            if any(each != usual for each in value):
                parts.append("%s %s" % (name, _by(value)))
        if self.groups != 1:
            parts.append("groups %d" % self.groups)
        layout = ["channels_last"] if self.channels_last else []
        return " ".join([*parts, str(self.dtype).replace("torch.", ""), *layout])

    @property
    def operations(self) -> int:
        """Multiplications of one pass."""
        places = self.input if self.transposed else self.output
        return places[0] * math.prod(places[2:]) * math.prod(self.weight)

    @property
    def rest(self) -> tuple[Any, ...]:
        """What follows the tensors in a call."""
        return self.stride, self.padding, self.dilation, self.transposed, self.output_padding, self.groups


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Counts convolution passes while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: collections.Counter[tuple[Shape, str]] = collections.Counter()

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        with contextlib.suppress(Exception):  # whatever is odd about a call, the script's own result goes on
            if func is torch.ops.aten.convolution.default:
                source, weight, _, *rest = args
                self.passes[_shape(source, weight, tuple(result.shape), rest), "forward"] += 1
            elif func is torch.ops.aten.convolution_backward.default:
                gradient, source, weight, _, *rest, mask = args
                shape = _shape(source, weight, tuple(gradient.shape), rest)
                for direction, wanted in zip(DIRECTIONS[1:], mask):
                    self.passes[shape, direction] += bool(wanted)
        return result


def _shape(source: Any, weight: Any, output: tuple[int, ...], rest: Any) -> Shape:
    stride, padding, dilation, transposed, output_padding, groups = rest
    layout = LAYOUTS.get(source.dim())
    last = layout is not None and any(
        each.is_contiguous(memory_format=layout) and not each.is_contiguous() for each in (source, weight)
    )
    return Shape(
        input=tuple(source.shape),
        weight=tuple(weight.shape),
        output=output,
        stride=tuple(stride),
        padding=tuple(padding),
        dilation=tuple(dilation),
        transposed=bool(transposed),
        output_padding=tuple(output_padding),
        groups=int(groups),
        dtype=source.dtype,
        device=source.device,
        channels_last=last,
    )


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


# ---- what each pass costs


def measure(passes: dict[tuple[Shape, str], int], seconds: float) -> dict[str, Any]:
    """Rows for the report's `convolutions`, but for their mini-batch: those that cost most, as time allows.

    :param passes: what `Watch` counted
    :returns: rows; `leftOut`: how many there was no time for; `troubles`: what could not be measured, and why
    """
    end = time.monotonic() + seconds
    order = sorted((key for key, count in passes.items() if count), key=lambda key: -key[0].operations * passes[key])
    rows: list[dict[str, Any]] = []
    troubles: list[str] = []
    for shape, direction in order:
        if time.monotonic() >= end:
            break
        algorithms, used = _algorithms(shape, direction, end, troubles)
        if algorithms:
            row: dict[str, Any] = {"shape": shape.text, "direction": direction, "algorithms": algorithms}
            row["layers"] = passes[shape, direction]
            rows.append(dict(row, used=used) if used else row)
    return {"rows": rows, "leftOut": len(order) - len(rows), "troubles": troubles[:8]}


def _algorithms(
    shape: Shape, direction: str, end: float, troubles: list[str]
) -> tuple[list[dict[str, Any]], str | None]:
    found: dict[str, dict[str, Any]] = {}
    tried: set[str] = set()
    used = None
    with _troubles("%s, %s" % (shape.text, direction), troubles):
        for way, is_used in _ways(shape, direction, troubles):
            if time.monotonic() >= end and found:
                break
            if way.name in tried:
                continue
            tried.add(way.name)
            with _troubles("%s, %s, %s" % (shape.text, direction, way.name), troubles):
                measured = timed(way, shape.device, end)
                found[way.name] = dict(measured, name=way.name, kind=way.kind)
                used = way.name if is_used else used
    return list(found.values())[:64], used


@contextlib.contextmanager
def _troubles(what: str, troubles: list[str]) -> Iterator[None]:
    """What goes wrong inside, such as too little memory or a way that this build lacks, is noted and ends no more."""
    try:
        yield
    except (RuntimeError, TypeError, AttributeError) as error:
        troubles.append("%s: %s" % (what, (str(error).splitlines() or [type(error).__name__])[0][:200]))


def _ways(shape: Shape, direction: str, troubles: list[str]) -> Iterator[tuple[Way, bool]]:
    """Each way, and whether it is the one that the script's own iterations take."""
    if shape.device.type == "cuda":
        yield from _ways_of_cuda(shape, direction, troubles)
        return
    for on, last in ((torch.backends.mkldnn.enabled, shape.channels_last), (True, False), (True, True), (False, False)):
        if last and len(shape.input) not in LAYOUTS:
            continue
        tensors = _tensors(shape, last)
        with _onednn(on):
            backend = _backend(shape, tensors)
        workspace = _columns(shape) if backend.startswith("Slow") else 0  # what oneDNN takes cannot be seen
        settings = functools.partial(_onednn, on)
        way = Way(_name(backend, last), _kind(backend), _pass(shape, direction, tensors), settings, workspace)
        yield way, (on, last) == (torch.backends.mkldnn.enabled, shape.channels_last)


def _ways_of_cuda(shape: Shape, direction: str, troubles: list[str]) -> Iterator[tuple[Way, bool]]:
    """In the memory format that the script uses: another one for one layer alone would cost copies around it."""
    tensors = _tensors(shape, shape.channels_last)
    run = _pass(shape, direction, tensors)
    own = torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark
    for setting in ((True, False), (True, True), (False, False)):
        with _cudnn(*setting):
            backend = _backend(shape, tensors)
        searched = ".benchmark" if setting[1] and "Cudnn" in backend else ""
        name = _name(backend, shape.channels_last) + searched
        way = Way(name, _kind(backend), run, functools.partial(_cudnn, *setting))
        yield way, setting == own or not (setting[0] or own[0])
    if not shape.transposed:
        try:
            plans = torch_cudnn.plans(direction, *tensors, shape.stride, shape.padding, shape.dilation)
        except torch_cudnn.Unavailable as error:
            troubles += [str(error)] if str(error) not in troubles else []
            return
        for plan in plans:
            yield Way(plan.name, plan.kind, plan.run, contextlib.nullcontext, plan.workspace), False


def _tensors(shape: Shape, channels_last: bool) -> tuple[Any, Any, Any]:
    """Input, weight, and the output's gradient."""
    made = (
        torch.randn(size, device=shape.device).to(shape.dtype) for size in (shape.input, shape.weight, shape.output)
    )
    layout = LAYOUTS[len(shape.input)] if channels_last else torch.contiguous_format
    first, second, third = (each.contiguous(memory_format=layout) for each in made)
    return first, second, third


def _pass(shape: Shape, direction: str, tensors: tuple[Any, Any, Any]) -> Callable[[], Any]:
    source, weight, gradient = tensors
    mask = [direction == "inputGradient", direction == "weightGradient", False]

    def run() -> Any:
        with torch.no_grad():
            if direction == "forward":
                return torch.convolution(source, weight, None, *shape.rest)
            return torch.ops.aten.convolution_backward(gradient, source, weight, None, *shape.rest, mask)

    return run


def _backend(shape: Shape, tensors: tuple[Any, Any, Any]) -> str:
    """The implementation that PyTorch itself takes under the present settings, by PyTorch's name for it."""
    select = getattr(torch._C, "_select_conv_backend", None)
    if select is None:
        return "Default"
    return str(select(*tensors[:2], None, *shape.rest)).rpartition(".")[2]


def _name(backend: str, channels_last: bool) -> str:
    return backend + (".channels_last" if channels_last else "")


def _kind(backend: str) -> str:
    for sign, kind in (("Slow", "GEMM"), ("Mkldnn", "oneDNN"), ("Cudnn", "cuDNN"), ("epthwise", "Direct")):
        if sign in backend:
            return kind
    return "Other"


def _columns(shape: Shape) -> int:
    """Bytes of the matrix into which the native implementation unfolds its input, the whole batch of it."""
    places = shape.input if shape.transposed else shape.output
    if math.prod(shape.weight[2:]) == 1:
        return 0
    element_bytes = int(torch.empty(0, dtype=shape.dtype).element_size())
    return places[0] * math.prod(shape.weight[1:]) * math.prod(places[2:]) * element_bytes


@contextlib.contextmanager
def _onednn(on: bool) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it also sets what only Intel's GPUs have, and says that there are none
        with torch.backends.mkldnn.flags(enabled=on):
            yield


@contextlib.contextmanager
def _cudnn(on: bool, benchmark: bool) -> Iterator[None]:
    cudnn = torch.backends.cudnn
    before = cudnn.enabled, cudnn.benchmark
    cudnn.enabled, cudnn.benchmark = on, benchmark
    try:
        yield
    finally:
        cudnn.enabled, cudnn.benchmark = before
