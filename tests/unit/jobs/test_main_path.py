"""A job's life when nothing goes wrong."""

import pytest
from model.world import World, spec
from muster.api.status import ConditionType as Is
from muster.jobs.model import CreatePod, CreateService


def test_a_job_is_profiled_sized_run_and_complete() -> None:
    world = World(spec=spec(workers=3, servers=2))
    world.settle()
    assert list(world.pods) == ["job-profiler"]
    assert world.status.state == "Profiling"

    world.run()
    world.exit("job-profiler")
    decision = world.settle()
    assert world.says(Is.PROFILED) == ("True", "Profiled")
    assert world.status.plan is not None
    assert world.status.plan.workers.value == 3
    assert sorted(world.pods) == [
        "job-profiler",
        "job-server-0",
        "job-server-1",
        "job-worker-0",
        "job-worker-1",
        "job-worker-2",
    ]
    assert list(world.services) == ["job"]
    assert list(world.config_maps) == ["job-profile"]
    assert world.status.state == "Starting"
    assert decision.actions == ()

    world.run()
    world.settle()
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")
    assert (world.status.workers.ready, world.status.servers.ready) == (3, 2)

    world.exit("job-worker-0")
    world.reconcile()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")
    assert world.status.completion_time == world.now
    assert {name for name, pod in world.pods.items() if not pod.deleting} == {"job-profiler", "job-worker-0"}
    assert world.services == {}


@pytest.mark.scenario("C14")
def test_the_plan_is_in_the_status_no_later_than_its_first_pod_and_the_service_comes_before_the_pods() -> None:
    world = World()
    world.settle()
    world.exit("job-profiler")
    world.reconcile()
    decision = world.reconcile()
    kinds = [type(action) for action in decision.actions]
    assert decision.status_first
    assert decision.status.plan is not None
    assert kinds.index(CreateService) < kinds.index(CreatePod)
