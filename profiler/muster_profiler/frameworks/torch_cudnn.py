"""Every execution plan that cuDNN has for one pass of a convolution, by NVIDIA's front end (`nvidia-cudnn-frontend`,
module `cudnn`), where the user's image has it.

Of cuDNN's plans those are left out that PyTorch itself would not take: they compute with less precision than the script
asked for. A plan's class is found out by asking for the plans of that class alone: only those can then be built.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any, Callable

import torch

MOST_PLANS = 24
CLASSES = (("WINOGRAD", "Winograd"), ("FFT", "FFT"))
KINDS = {torch.float32: "FLOAT", torch.float16: "HALF", torch.bfloat16: "BFLOAT16"}


class Unavailable(Exception):
    """No plans; the message says why."""


@dataclass(frozen=True)
class Plan:
    """`workspace` in bytes; `run` runs it once."""

    name: str
    kind: str
    workspace: int
    run: Callable[[], Any]


@dataclass(frozen=True)
class _Pass:
    direction: str
    source: Any
    weight: Any
    gradient: Any
    attributes: dict[str, list[int]]


def plans(
    direction: str,
    source: Any,
    weight: Any,
    gradient: Any,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> list[Plan]:
    """The plans of one pass on these tensors, in the order of cuDNN's own heuristics.

    :raises Unavailable: the front end is not there, or refuses
    """
    if source.dtype not in KINDS:
        raise Unavailable("cuDNN's single plans are not known for %s" % source.dtype)
    try:
        cudnn = importlib.import_module("cudnn")
    except ImportError as error:
        raise Unavailable("cuDNN's single plans: the image has no nvidia-cudnn-frontend (%s)" % error) from error
    attributes = {"padding": [*padding], "stride": [*stride], "dilation": [*dilation]}
    if source.dim() == 3:  # cuDNN knows no fewer than two dimensions of space
        source, weight, gradient = (tensor.unsqueeze(2) for tensor in (source, weight, gradient))
        attributes = {key: [int(key != "padding"), *value] for key, value in attributes.items()}
    work = _Pass(direction, source, weight, gradient, attributes)
    try:
        with torch.cuda.device(source.device):
            graph, pack = _graph(cudnn, work)
            graph.deselect_numeric_notes([getattr(cudnn.numerical_note, note) for note in _unwanted(source.dtype)])
            alone = {}
            for note, kind in CLASSES:
                alone[kind] = _graph(cudnn, work)[0]
                alone[kind].select_numeric_notes([getattr(cudnn.numerical_note, note)])
            return [
                _plan(cudnn, graph, pack, index, alone)
                for index in range(min(MOST_PLANS, graph.get_execution_plan_count()))
                if _builds(graph, index)
            ]
    except Exception as error:  # its errors have no common class, and no version is the same as another
        said = (str(error).splitlines() or [""])[0][:200]
        raise Unavailable("cuDNN's single plans: %s: %s" % (type(error).__name__, said)) from error


def _unwanted(dtype: Any) -> list[str]:
    """Notes of plans that PyTorch does not take under the script's settings."""
    notes = ["NONDETERMINISTIC"] if torch.backends.cudnn.deterministic else []
    if dtype == torch.float32 and not torch.backends.cudnn.allow_tf32:
        notes.append("TENSOR_CORE")
    return [*notes, "DOWN_CONVERT_INPUTS"]


@functools.lru_cache(maxsize=None)
def _handle(cudnn: Any, device: int) -> Any:
    """One a device, on its default stream."""
    with torch.cuda.device(device):
        return cudnn.create_handle()


def _graph(cudnn: Any, work: _Pass) -> tuple[Any, dict[Any, Any]]:
    kind = getattr(cudnn.data_type, KINDS[work.source.dtype])
    single = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        io_data_type=kind,
        intermediate_data_type=single,
        compute_data_type=single,
        handle=_handle(cudnn, torch.cuda.current_device()),
    )
    first, second, like, operation = {
        "forward": (work.source, work.weight, work.gradient, graph.conv_fprop),
        "inputGradient": (work.gradient, work.weight, work.source, graph.conv_dgrad),
        "weightGradient": (work.source, work.gradient, work.weight, graph.conv_wgrad),
    }[work.direction]
    result = torch.empty_like(like)
    inputs = [graph.tensor(dim=list(t.shape), stride=list(t.stride()), data_type=kind) for t in (first, second)]
    output = operation(*inputs, **work.attributes)
    output.set_output(True).set_dim(list(result.shape)).set_stride(list(result.stride())).set_data_type(kind)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK])
    return graph, {inputs[0]: first, inputs[1]: second, output: result}


def _builds(graph: Any, index: int) -> bool:
    try:
        graph.build_plan_at_index(index)
    except Exception:  # noqa: BLE001  a plan that this device does not support, or that was not wanted
        return False
    return True


def _plan(cudnn: Any, graph: Any, pack: dict[Any, Any], index: int, alone: dict[str, Any]) -> Plan:
    size = int(graph.get_workspace_size_plan_at_index(index))
    kind = next((kind for kind, only in alone.items() if _builds(only, index)), "GEMM")

    def run() -> Any:
        workspace = torch.empty(max(1, size), dtype=torch.uint8, device="cuda")
        graph.execute_plan_at_index(pack, workspace, index, _handle(cudnn, torch.cuda.current_device()))

    return Plan("cudnn:%s" % str(graph.get_plan_name_at_index(index))[:200], kind, size, run)
