"""Conditions, reasons and events."""

import re
from pathlib import Path

import pytest
from model.world import START, World, spec
from muster.api.status import ConditionType as Is
from muster.api.status import TrainingJobStatus
from muster.jobs import conditions, indexes
from muster.jobs.reasons import Reason, State

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"


def test_every_condition_is_there_from_first_sight() -> None:
    world = World()
    world.reconcile()
    assert [condition.type for condition in world.status.conditions] == [str(kind) for kind in Is]
    assert all(condition.observed_generation == 1 for condition in world.status.conditions)


@pytest.mark.scenario("D1")
def test_d1_the_transition_time_moves_only_with_the_status() -> None:
    status = conditions.put(TrainingJobStatus(), Is.PROFILED, "False", "A", "", 1, START)
    later = START.replace(hour=1)
    status = conditions.put(status, Is.PROFILED, "False", "B", "other words", 2, later)
    found = conditions.get(status, Is.PROFILED)
    assert found is not None
    assert (found.reason, found.observed_generation, found.last_transition_time) == ("B", 2, START)
    status = conditions.put(status, Is.PROFILED, "True", "C", "", 2, later)
    assert conditions.get(status, Is.PROFILED).last_transition_time == later  # type: ignore[union-attr]


@pytest.mark.scenario("D1")
def test_d1_conditions_do_not_contradict_each_other_at_the_end() -> None:
    world = World(spec=spec(2, 1)).running()
    world.exit("job-worker-0")
    world.settle()
    assert world.says(Is.COMPLETE)[0] == "True"
    assert world.says(Is.FAILED)[0] == "False"
    assert world.says(Is.PODS_READY) == ("False", "JobFinished")


def test_the_generation_is_always_that_of_the_spec_that_was_seen() -> None:
    world = World().running()
    world.policy(backoffLimit=7)
    world.settle()
    assert world.status.observed_generation == 2
    assert all(condition.observed_generation == 2 for condition in world.status.conditions)


def test_a_status_is_written_few_times_over_a_jobs_life() -> None:
    world = World(spec=spec(3, 2)).running()
    world.exit("job-worker-0")
    world.settle()
    world.tick()
    world.settle()
    assert world.writes <= 7


def test_deciding_again_on_its_own_status_changes_nothing() -> None:
    world = World()
    for step in (world.settle, world.run, lambda: world.exit("job-profiler"), world.settle, world.run, world.settle):
        step()
        world.reconcile()
        writes = world.writes
        world.reconcile()
        assert world.writes - writes <= 1


def test_an_event_tells_of_each_change_once() -> None:
    world = World(spec=spec(2, 1)).running()
    world.exit("job-worker-1", 1)
    world.settle()
    world.tick(60)
    world.settle()
    world.run()
    world.settle()
    world.exit("job-worker-0")
    world.settle()
    assert [(event.type, event.reason) for event in world.events] == [
        ("Normal", "Profiling"),
        ("Normal", "Profiled"),
        ("Normal", "SizedWithUserValues"),
        ("Normal", "PodsReady"),
        ("Warning", "Exited"),
        ("Normal", "PodsReady"),
        ("Normal", "Succeeded"),
    ]


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_documented_with_what_to_do(reason: Reason) -> None:
    assert re.search(rf"^\| `{reason}` \| {re.escape(reason.meaning)} \| .+ \|$", OPERATIONS.read_text(), re.MULTILINE)


@pytest.mark.parametrize("state", list(State))
def test_every_state_is_documented(state: State) -> None:
    assert f"`{state}`" in OPERATIONS.read_text()


@pytest.mark.parametrize(
    ("text", "numbers"), [("", []), ("0", [0]), ("0,3-5", [0, 3, 4, 5]), ("0-511", list(range(512))), ("7-8", [8, 7])]
)
def test_sets_of_indexes_are_written_as_an_indexed_job_does(text: str, numbers: list[int]) -> None:
    assert indexes.pack(numbers) == text
    assert indexes.unpack(text) == frozenset(numbers)
