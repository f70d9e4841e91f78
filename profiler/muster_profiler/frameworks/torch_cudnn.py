"""Every execution plan that cuDNN has for one pass of a convolution, by NVIDIA's front end (`nvidia-cudnn-frontend`,
module `cudnn`), where the user's image has it.

A plan's class is found out by asking for the same plans without a class: those that can then not be built are of it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Callable

import torch

MOST_PLANS = 24
CLASSES = (("WINOGRAD", "Winograd"), ("FFT", "FFT"))


class Unavailable(Exception):
    """No plans; the message says why."""


@dataclass(frozen=True)
class Plan:
    """`workspace` in bytes; `run` runs it once."""

    name: str
    kind: str
    workspace: int
    run: Callable[[], Any]


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
    try:
        cudnn = importlib.import_module("cudnn")
        attributes = {"padding": list(padding), "stride": list(stride), "dilation": list(dilation)}
        graph, pack = _graph(cudnn, direction, (source, weight, gradient), attributes)
        barred = {
            kind: _graph(cudnn, direction, (source, weight, gradient), attributes, note)[0] for note, kind in CLASSES
        }
        return [
            _plan(graph, pack, index, barred)
            for index in range(min(MOST_PLANS, graph.get_execution_plan_count()))
            if _builds(graph, index)
        ]
    except Exception as error:  # its errors have no common class, and no version is the same as another
        raise Unavailable("%s: %s" % (type(error).__name__, str(error).splitlines()[:1])) from error


def _graph(
    cudnn: Any, direction: str, tensors: tuple[Any, Any, Any], attributes: dict[str, Any], without: str | None = None
) -> tuple[Any, dict[Any, Any]]:
    source, weight, gradient = tensors
    kinds = {torch.float32: "FLOAT", torch.float16: "HALF", torch.bfloat16: "BFLOAT16"}
    kind = getattr(cudnn.data_type, kinds[source.dtype])
    single = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(io_data_type=kind, intermediate_data_type=single, compute_data_type=single)
    operands = {
        "forward": (source, weight, gradient, graph.conv_fprop),
        "inputGradient": (gradient, weight, source, graph.conv_dgrad),
        "weightGradient": (source, gradient, weight, graph.conv_wgrad),
    }
    first, second, like, operation = operands[direction]
    result = torch.empty_like(like)
    inputs = [graph.tensor(dim=list(t.shape), stride=list(t.stride()), data_type=kind) for t in (first, second)]
    output = operation(*inputs, **attributes)
    output.set_output(True).set_dim(list(result.shape)).set_stride(list(result.stride())).set_data_type(kind)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK])
    if without:
        graph.deselect_numeric_notes([getattr(cudnn.numerical_note, without)])
    return graph, {inputs[0]: first, inputs[1]: second, output: result}


def _builds(graph: Any, index: int) -> bool:
    try:
        graph.build_plan_at_index(index)
    except Exception:  # noqa: BLE001  a plan that this device does not support
        return False
    return True


def _plan(graph: Any, pack: dict[Any, Any], index: int, barred: dict[str, Any]) -> Plan:
    size = int(graph.get_workspace_size_plan_at_index(index))
    kind = next((kind for kind, without in barred.items() if not _builds(without, index)), "GEMM")

    def run() -> Any:
        workspace = torch.empty(max(1, size), dtype=torch.uint8, device="cuda")
        graph.execute_plan_at_index(pack, workspace, index)

    return Plan("cudnn:%s" % str(graph.get_plan_name_at_index(index))[:200], kind, size, run)
