"""Processes in place of pods: what the kubelet and the scheduler would see to, this machine sees to."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from muster.api import labels
from muster.api.status import TrainingJobStatus
from muster.jobs.model import CreatePod, DeletePod, Event, Job, Pod, ReadReport, ReportProblem
from muster.local.machine import Machine
from muster.local.ports import AddressBook


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.on_gpus: dict[str, tuple[str, ...]] = {}

    def line(self, pod: Pod, text: str) -> None:
        self.lines.append(f"{pod.name}: {text}")

    def started(self, pod: Pod, gpus: tuple[str, ...]) -> None:
        self.on_gpus[pod.name] = gpus

    def event(self, event: Event) -> None: ...

    def planned(self, job: Job) -> None: ...


JOB = Job("default", "job", "uid", 1, datetime.now(UTC), None, TrainingJobStatus())


def create(name: str, script: str, *, gpus: int = 0, **spec: Any) -> CreatePod:
    container = {"name": "train", "command": ["sh", "-c", script], "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    marks = {labels.ROLE: "worker", labels.INDEX: name[-1], labels.ATTEMPT: "1"}
    return CreatePod(name, {"metadata": {"labels": marks}, "spec": {"containers": [container], **spec}})


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def machine(tmp_path: Path, heard: Heard) -> Iterator[Machine]:
    machine = Machine(tmp_path, tmp_path, heard, gpus=("0", "1", "2"))
    yield machine
    machine.stop()


def pods(machine: Machine, until: Callable[[dict[str, Pod]], bool]) -> dict[str, Pod]:
    """The machine's pods by name, once `until` holds of them."""
    end = time.monotonic() + 120
    while not until(found := {pod.name: pod for pod in machine.observe(JOB).pods}):
        assert time.monotonic() < end, found
        machine.wait(0.05)
    return found


def test_a_process_runs_is_ready_and_ends_as_a_pod_does(machine: Machine) -> None:
    machine.act(JOB, create("w-0", "sleep 0.2"))
    machine.act(JOB, create("w-1", "echo oops; exit 3"))
    found = pods(machine, lambda seen: all(pod.termination for pod in seen.values()))
    assert (found["w-0"].phase, found["w-1"].phase) == ("Succeeded", "Failed")
    ending = found["w-1"].termination
    assert ending is not None
    assert (ending.exit_code, ending.message) == (3, "oops\n")


def test_making_a_pod_twice_makes_one_process(machine: Machine, heard: Heard) -> None:
    for _ in range(2):
        machine.act(JOB, create("w-0", "echo here; sleep 5"))
    pods(machine, lambda _: bool(heard.lines))
    assert heard.lines == ["w-0: here"]


def test_gpus_are_shared_out_and_who_finds_none_waits(machine: Machine, heard: Heard) -> None:
    machine.act(JOB, create("w-0", "echo $CUDA_VISIBLE_DEVICES; sleep 0.3", gpus=2))
    machine.act(JOB, create("w-1", "echo $CUDA_VISIBLE_DEVICES", gpus=2))
    machine.act(JOB, create("w-2", "echo none:$CUDA_VISIBLE_DEVICES"))
    waiting = {pod.name: pod for pod in machine.observe(JOB).pods}["w-1"]
    assert (waiting.phase, waiting.unschedulable) == ("Pending", "2 GPUs are needed, 1 of this machine's 3 are free")
    found = pods(machine, lambda seen: all(pod.termination for pod in seen.values()))
    assert not any(pod.unschedulable for pod in found.values())
    assert heard.on_gpus == {"w-0": ("0", "1"), "w-2": (), "w-1": ("0", "1")}
    assert sorted(heard.lines) == ["w-0: 0,1", "w-1: 0,1", "w-2: none:"]


def test_the_inventory_has_this_machine_s_gpus(machine: Machine) -> None:
    inventory = machine.observe(JOB).inventory
    assert inventory is not None
    assert inventory.gpus == 3


def test_a_deleted_pod_is_asked_then_ended_and_then_gone(machine: Machine, heard: Heard) -> None:
    machine.act(JOB, create("w-0", "trap '' TERM; echo deaf; sleep 100 & wait; sleep 100"))
    pods(machine, lambda _: bool(heard.lines))
    machine.act(JOB, DeletePod("w-0", "", grace_seconds=1))
    assert pods(machine, lambda _: True)["w-0"].deleting
    pods(machine, lambda seen: not seen)


def test_a_pod_is_ended_at_its_deadline(machine: Machine) -> None:
    machine.act(JOB, create("w-0", "sleep 100", activeDeadlineSeconds=0))
    found = pods(machine, lambda seen: bool(seen["w-0"].termination))["w-0"]
    assert (found.phase, found.reason) == ("Failed", "DeadlineExceeded")


def test_a_command_that_cannot_start_is_a_failed_pod(machine: Machine) -> None:
    action = create("w-0", "")
    action.body["spec"]["containers"][0]["command"] = ["no-such-program"]
    machine.act(JOB, action)
    ending = pods(machine, lambda seen: bool(seen["w-0"].termination))["w-0"].termination
    assert ending is not None
    assert (ending.exit_code, ending.reason) == (127, "StartError")
    assert "no-such-program: No such file or directory" in ending.message


def test_a_process_ends_with_what_it_started_and_its_output_does_not_hold_it_open(machine: Machine) -> None:
    machine.act(JOB, create("w-0", "setsid sleep 86391 & sleep 86391 & exit 0"))
    pods(machine, lambda seen: seen["w-0"].phase == "Succeeded")
    left = [each for each in psutil.process_iter(["cmdline", "status"]) if "86391" in (each.info["cmdline"] or [])]
    assert [each for each in left if each.info["status"] != psutil.STATUS_ZOMBIE] == []


def test_a_report_that_is_not_there_is_a_problem_in_words(machine: Machine) -> None:
    machine.act(JOB, ReadReport(config_map="absent"))
    found = machine.observe(JOB)
    assert isinstance(found.report, ReportProblem)
    assert found.report.message == "the job's file has no ConfigMap absent with report.json"
    assert found.report_of == "absent"


def test_an_address_is_one_s_own_and_stays() -> None:
    book = AddressBook()
    names = [f"w-{index}" for index in range(50)]
    first = [book.address("ns", "job", name) for name in names]
    assert len(set(first)) == 50
    assert [book.address("ns", "job", name) for name in names] == first
