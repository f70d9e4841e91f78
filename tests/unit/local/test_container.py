"""A pod's training container as a command of this machine."""

from typing import Any

import pytest
from muster.local.container import command, expand, left_out


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("--batch-size=$(N)", "--batch-size=64"),
        ("$(N)$(N)", "6464"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(N)", "$(N)"),
        ("$$$(N)", "$64"),
        ("$$$$(N)", "$$(N)"),
        ("$N ${N} $", "$N ${N} $"),
        ("$(N", "$(N"),
        ("100$$", "100$"),
    ],
)
def test_variables_are_expanded_as_the_kubelet_does(text: str, expanded: str) -> None:
    assert expand(text, {"N": "64"}) == expanded


def pod(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "sidecar", "image": "x"}, {"name": "train", **container}]}}


def test_a_variable_may_refer_to_an_earlier_one_and_a_command_to_all() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2"},
        {"name": "C", "value": "$(D)"},
        {"name": "D", "value": "4"},
    ]
    found = command(pod(command=["run", "$(B)"], args=["$(D)"], env=env))
    assert found.argv == ("run", "12", "4")
    assert found.environment == {"A": "1", "B": "12", "C": "$(D)", "D": "4"}


def test_gpus_grace_and_deadline_are_those_of_the_pod() -> None:
    body = pod(command=["run"], resources={"limits": {"nvidia.com/gpu": "2"}})
    body["spec"] |= {"terminationGracePeriodSeconds": 3, "activeDeadlineSeconds": 60}
    found = command(body)
    assert (found.gpus, found.grace_seconds, found.deadline_seconds) == (2, 3, 60)


def test_an_entrypoint_cannot_be_known() -> None:
    with pytest.raises(ValueError, match="train has no command"):
        command(pod(args=["x"]))


def test_what_a_process_does_without_is_told() -> None:
    spec = pod(image="i:1", command=["x"], workingDir="/app", env=[{"name": "S", "valueFrom": {}}])["spec"]
    spec |= {"volumes": [{"name": "data"}], "initContainers": [{"name": "fetch"}]}
    expected = "image i:1|container sidecar|init container fetch|volume data|variable S (valueFrom)|workingDir /app"
    assert left_out(spec) == expected.split("|")
