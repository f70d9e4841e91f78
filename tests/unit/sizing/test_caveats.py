"""Warnings about a profile of other devices than the job's, and about room that nobody counted."""

import pytest
from muster.api.inventory import Inventory, Node
from muster.sizing import Infeasible, plan
from unit.sizing.reports import efficiency, limits, point, report

CPU = {"kind": "cpu", "name": "a laptop", "memoryBytes": 16 << 30}


def warnings(found):
    return {warning.reason: warning.message for warning in found.warnings}


@pytest.mark.parametrize(
    ("device", "uses_gpus", "warns"), [(CPU, True, True), (CPU, False, False), (None, True, False)]
)
def test_a_profile_of_a_cpu_is_none_of_a_gpu_s(device, uses_gpus, warns):
    measured = report(point(64, 0.2, 0.01), **({"device": device} if device else {}))
    found = warnings(plan(measured, efficiency(80), limits(uses_gpus=uses_gpus), None))
    assert ("ProfiledOnCpu" in found) == warns
    assert not warns or "a laptop" in found["ProfiledOnCpu"]


@pytest.mark.parametrize(
    ("bounds", "warns"),
    [({}, True), ({"max_workers": 6}, False), ({"workers": 6}, False), ({"uses_gpus": True}, False)],
    ids=["nobody-bounds-them", "by-a-maximum", "by-the-user", "by-gpus"],
)
def test_workers_without_gpus_are_warned_of_where_nothing_bounds_them(bounds, warns):
    found = plan(report(point(64, 0.2, 0.01)), efficiency(80), limits(**{"uses_gpus": False, **bounds}), None)
    assert found.workers.value == 6
    assert ("RoomUnknown" in warnings(found)) == warns


def test_a_worker_that_is_larger_than_every_node_is_told_so():
    with pytest.raises(Infeasible, match="One worker needs 16 GPUs: the cluster has 8, but no node has 16"):
        plan(
            report(point(64, 0.2, 0.01)),
            efficiency(80),
            limits(gpus_per_worker=16),
            Inventory((Node("a", 4, 0, 0), Node("b", 4, 0, 0))),
        )
