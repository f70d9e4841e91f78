"""cuDNN's single plans, by a front end that is made up: its calls are those of nvidia-cudnn-frontend 1.24."""

import contextlib
import sys
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from muster_profiler.frameworks import torch_cudnn

PLANS = [("eng0", ()), ("eng1", ("WINOGRAD",)), ("eng2", ("FFT",)), ("eng3", ("DOWN_CONVERT_INPUTS",)), ("eng4", None)]
"""Name and notes; None: not for this device."""


class Tensor:
    def __init__(self, dim, stride, **_):
        self.dim, self.stride = dim, stride

    def set_output(self, _):
        return self

    set_data_type = set_output

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self


class Graph:
    """One pygraph."""

    made: ClassVar = []

    def __init__(self, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert (io_data_type, intermediate_data_type, compute_data_type, handle) == ("FLOAT", "FLOAT", "FLOAT", 7)
        self.barred, self.operation = lambda _notes: False, None
        Graph.made.append(self)

    def tensor(self, *, dim, stride, data_type):
        assert data_type == "FLOAT"
        return Tensor(dim, stride)

    def _operation(self, name, operands, attributes):
        self.operation = (name, [operand.dim for operand in operands], attributes)
        return Tensor(None, None)

    def conv_fprop(self, image, weight, *, padding, stride, dilation):
        return self._operation("forward", (image, weight), (padding, stride, dilation))

    def conv_dgrad(self, loss, filter, *, padding, stride, dilation):
        return self._operation("inputGradient", (loss, filter), (padding, stride, dilation))

    def conv_wgrad(self, image, loss, *, padding, stride, dilation):
        return self._operation("weightGradient", (image, loss), (padding, stride, dilation))

    def validate(self):
        pass

    build_operation_graph = validate

    def create_execution_plans(self, modes):
        assert modes == ["A", "B", "FALLBACK"]

    def get_execution_plan_count(self):
        return len(PLANS)

    def deselect_numeric_notes(self, unwanted):
        self.barred = lambda notes: bool({*unwanted} & {*notes})

    def select_numeric_notes(self, wanted):
        self.barred = lambda notes: not {*wanted} <= {*notes}

    def build_plan_at_index(self, index):
        if PLANS[index][1] is None or self.barred(PLANS[index][1]):
            raise RuntimeError("[cudnn_frontend] Error: Deselecting execution plan")

    def get_workspace_size_plan_at_index(self, index):
        return 1000 * index

    def get_plan_name_at_index(self, index):
        return PLANS[index][0]


@pytest.fixture
def front_end(monkeypatch):
    notes = ("WINOGRAD", "FFT", "DOWN_CONVERT_INPUTS", "NONDETERMINISTIC", "TENSOR_CORE")
    made = SimpleNamespace(
        data_type=SimpleNamespace(FLOAT="FLOAT", HALF="HALF", BFLOAT16="BFLOAT16"),
        numerical_note=SimpleNamespace(**{note: note for note in notes}),
        heur_mode=SimpleNamespace(A="A", B="B", FALLBACK="FALLBACK"),
        pygraph=Graph,
        create_handle=lambda: 7,
    )
    monkeypatch.setitem(sys.modules, "cudnn", made)
    monkeypatch.setattr(torch_cudnn, "_handle", lambda cudnn, _device: cudnn.create_handle())
    monkeypatch.setattr(torch.cuda, "device", lambda _device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(Graph, "made", [])


def tensors(*spatial, dtype=torch.float32):
    return (
        torch.zeros(2, 3, *spatial, dtype=dtype),
        torch.zeros(4, 3, *[1] * len(spatial), dtype=dtype),
        torch.zeros(2, 4, *spatial, dtype=dtype),
    )


def test_each_plan_that_pytorch_could_take_with_its_class_and_workspace(front_end):
    found = torch_cudnn.plans("forward", *tensors(5, 5), (1, 1), (0, 0), (1, 1))

    assert [(plan.name, plan.kind, plan.workspace) for plan in found] == [
        ("cudnn:eng0", "GEMM", 0),
        ("cudnn:eng1", "Winograd", 1000),
        ("cudnn:eng2", "FFT", 2000),
    ]


@pytest.mark.parametrize(
    ("direction", "operands"),
    [
        ("forward", [[2, 3, 1, 5], [4, 3, 1, 1]]),
        ("inputGradient", [[2, 4, 1, 5], [4, 3, 1, 1]]),
        ("weightGradient", [[2, 3, 1, 5], [2, 4, 1, 5]]),
    ],
)
def test_a_convolution_over_one_dimension_is_one_over_two(front_end, direction, operands):
    torch_cudnn.plans(direction, *tensors(5), (1,), (0,), (2,))

    assert Graph.made[0].operation == (direction, operands, ([0, 0], [1, 1], [1, 2]))


def test_a_script_that_asks_for_determinism_gets_no_other_plans(front_end, monkeypatch):
    monkeypatch.setattr(torch_cudnn, "CLASSES", ())
    monkeypatch.setitem(globals(), "PLANS", [("eng0", ("NONDETERMINISTIC",)), ("eng1", ())])
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)

    found = torch_cudnn.plans("forward", *tensors(5, 5), (1, 1), (0, 0), (1, 1))

    assert [plan.name for plan in found] == ["cudnn:eng1"]


def test_an_image_without_the_front_end_is_told_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "cudnn", None)

    with pytest.raises(torch_cudnn.Unavailable, match="the image has no nvidia-cudnn-frontend"):
        torch_cudnn.plans("forward", *tensors(5, 5), (1, 1), (0, 0), (1, 1))


def test_double_precision_has_no_single_plans(front_end):
    with pytest.raises(torch_cudnn.Unavailable, match="not known for torch"):
        torch_cudnn.plans("forward", *tensors(5, 5, dtype=torch.float64), (1, 1), (0, 0), (1, 1))
