"""The models read a manifest as the API server does."""

from typing import Any

import pytest
from muster.api.job import TrainingJobSpec
from pydantic import ValidationError
from support.job_constraints import CONSTRAINTS, Constraint, containers, gpus, spec


def read(patch: dict[str, Any]) -> TrainingJobSpec:
    return TrainingJobSpec.model_validate(spec(patch))


@pytest.mark.parametrize("case", CONSTRAINTS, ids=lambda case: case.title)
def test_a_constraint_passes_its_good_example_and_refuses_its_bad_one_with_its_message(case: Constraint) -> None:
    read(case.passes)
    with pytest.raises(ValidationError) as refused:
        read(case.refused)
    assert case.message in str(refused.value)


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"goal": {"efficiencyPercent": 0}}, "goal.efficiencyPercent"),
        ({"goal": {"efficiencyPercent": 101}}, "goal.efficiencyPercent"),
        ({"goal": {"efficiencyPercent": 0.8}}, "goal.efficiencyPercent"),
        ({"worker": {"replicas": 0}}, "worker.replicas"),
        ({"worker": {"replicas": 513}}, "worker.replicas"),
        ({"worker": {"replicas": "2"}}, "worker.replicas"),
        ({"worker": {"replica": 2}}, "worker.replica"),
        ({"runPolicy": {"suspend": "yes"}}, "runPolicy.suspend"),
        ({"runPolicy": {"backoffLimit": "3"}}, "runPolicy.backoffLimit"),
        ({"worker": {"template": {"spec": {"containers": []}}}}, "worker.template.spec.containers"),
        ({"worker": {"template": {"spec": {"containers": None}}}}, "worker.template.spec.containers"),
        ({"worker": {"template": {"spec": {"containers": [1]}}}}, "worker.template.spec.containers.0"),
        (
            {"worker": {"template": {"spec": {"containers": None, "hostNetwork": True}}}},
            "worker.template.spec.containers",
        ),
        (containers({"command": "python train.py"}), "worker.template.spec.containers.0.command"),
        (containers({"env": [{"name": "A", "value": 8}]}), "worker.template.spec.containers.0.env.0.value"),
        (containers({}, {}), "worker.template.spec"),
        ({"miniBatch": {"candidates": []}}, "miniBatch.candidates"),
        ({"miniBatch": {"candidates": list(range(1, 18))}}, "miniBatch.candidates"),
    ],
    ids=str,
)
def test_a_value_out_of_range_is_refused_by_the_name_of_its_field(patch: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read(patch)
    assert field in [".".join(map(str, error["loc"])) for error in refused.value.errors()]


def test_null_means_not_given() -> None:
    job = read({})
    nulled = TrainingJobSpec.model_validate(
        {**spec({}), "server": None, "goal": {"efficiencyPercent": 80, "speedup": None}}
    )
    assert nulled == job


@pytest.mark.parametrize(("depth", "taken"), [(48, True), (49, False), (900, False)])
def test_a_template_that_is_deeper_than_any_pod_is_refused(depth: int, taken: bool) -> None:
    deep: object = {}
    for _ in range(depth):
        deep = [deep]
    body = spec({})
    body["worker"]["template"]["spec"]["affinity"] = deep
    if taken:
        TrainingJobSpec.model_validate(body)
        return
    with pytest.raises(ValidationError, match="nested more than 50 levels deep"):
        TrainingJobSpec.model_validate(body)


@pytest.mark.parametrize(("amount", "count"), [(2, 2), ("2", 2), (0, 0)])
def test_gpus_are_read_from_the_training_container(amount: object, count: int) -> None:
    assert read(gpus(amount)).worker.template.gpus == count


def test_a_template_without_resources_has_no_gpus() -> None:
    assert read({}).worker.template.gpus == 0
    assert read(containers({"resources": {"limits": {"cpu": 0.5}}})).worker.template.gpus == 0


def test_a_pod_spec_is_kept_whole() -> None:
    extra = {"tolerations": [{"operator": "Exists"}], "initContainers": [{"name": "a", "image": "b"}]}
    assert read({"worker": {"template": {"spec": extra}}}).worker.template.spec["tolerations"] == extra["tolerations"]
