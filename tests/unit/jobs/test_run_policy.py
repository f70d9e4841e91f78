"""The run policy: restarts and their backoff, deadline, time to live, what is left behind, suspension, success."""

from datetime import timedelta
from itertools import pairwise

import pytest
from model.world import START, World, spec, template
from muster.api.status import ConditionType as Is
from muster.jobs.model import DeleteJob, Pod, Role


def worker_pods(world: World) -> list[str]:
    return sorted(name for name, pod in world.pods.items() if "worker" in name and not pod.deleting)


def crash(world: World) -> None:
    """Worker 1 exits with an error, the job notices, and its pods go."""
    world.exit("job-worker-1", 1)
    world.settle()
    world.tick()
    world.settle()


# Restarts.


@pytest.mark.scenario("C5")
def test_c5_backoff_limit_2_gives_exactly_3_starts_across_operator_restarts() -> None:
    world = World(spec=spec(2, None, runPolicy={"backoffLimit": 2})).running()
    for _ in range(5):
        if world.status.state == "Failed":
            break
        world.memory = None  # The operator restarts, and knows nothing but what the API server keeps.
        crash(world)
        world.tick(600)
        world.settle()
        world.run()
        world.settle()
    assert world.says(Is.FAILED) == ("True", "BackoffLimitExceeded")
    assert [name for name, _ in world.created].count("job-worker-0") == 3
    assert (world.status.restarts, world.status.attempt) == (2, 3)
    assert "job-worker-1 exited with 1" in world.condition(Is.FAILED).message


def test_the_backoff_doubles_to_its_cap_and_stands_in_the_status() -> None:
    world = World(spec=spec(2, None, runPolicy={"backoffLimit": 10})).running()
    waits = []
    for _ in range(8):
        crash(world)
        assert world.status.backoff_until is not None
        waits.append((world.status.backoff_until - world.now).total_seconds())
        assert world.reconcile().requeue_after == world.status.backoff_until - world.now
        assert worker_pods(world) == []
        world.tick(waits[-1])
        world.settle()
        world.run()
        world.settle()
    assert waits == [10, 20, 40, 80, 160, 320, 360, 360]


def test_the_whole_old_attempt_is_gone_before_the_new_one_starts() -> None:
    world = World(spec=spec(3, 2)).running()
    world.exit("job-worker-1", 1)
    world.settle()
    assert world.status.state == "Restarting"
    assert {pod.attempt for pod in world.pods.values() if pod.role != Role.PROFILER} == {1}
    world.now += timedelta(seconds=60)  # The backoff is over, and one pod still ends.
    world.pods = {name: pod for name, pod in world.pods.items() if not pod.deleting or name == "job-worker-2"}
    world.settle()
    assert worker_pods(world) == []
    assert "exited with 1" in world.condition(Is.PODS_READY).message
    world.tick()
    world.settle()
    assert worker_pods(world) == ["job-worker-0", "job-worker-1", "job-worker-2"]
    assert world.env("job-worker-0")["MUSTER_ATTEMPT"] == "2"


def test_a_restart_keeps_the_plan_and_makes_no_second_profile() -> None:
    world = World(spec=spec(None, 2)).running()
    plan = world.status.plan
    crash(world)
    world.tick(60)
    world.settle()
    assert world.status.plan == plan
    assert [name for name, _ in world.created].count("job-profiler") == 1


@pytest.mark.scenario("B4")
def test_b4_a_server_dies_and_all_workers_crash_is_one_restart_of_all_and_one_count() -> None:
    world = World(spec=spec(3, 2)).running()
    world.exit("job-server-0", 1)
    world.reconcile()
    for index in range(3):
        if f"job-worker-{index}" in world.pods:
            world.exit(f"job-worker-{index}", 1)
        world.reconcile()
    world.tick(60)
    world.settle()
    assert (world.status.restarts, world.status.attempt) == (1, 2)
    assert {pod.attempt for pod in world.pods.values() if pod.role in (Role.WORKER, Role.SERVER)} == {2}


def test_a_failure_that_is_counted_is_not_counted_again_when_the_operator_dies_after_the_write() -> None:
    world = World(spec=spec(3, 2)).running()
    world.exit("job-worker-1", 1)
    world.reconcile(dies_after=1)
    assert (world.status.restarts, world.deleted) == (1, [])
    world.settle()
    assert world.status.restarts == 1
    assert len(world.deleted) >= 5


def test_success_wins_over_a_failure_that_is_seen_at_the_same_time() -> None:
    world = World(spec=spec(2, None)).running()
    world.exit("job-worker-0")
    world.exit("job-worker-1", 143)
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")
    assert world.status.restarts == 0


# Deadline and time to live.


@pytest.mark.scenario("C6")
def test_c6_the_deadline_runs_while_pods_stay_pending() -> None:
    world = World(spec=spec(2, None, runPolicy={"activeDeadlineSeconds": 100})).profiled()
    world.change("job-worker-0", unschedulable="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    world.tick(99)
    assert world.settle().requeue_after == timedelta(seconds=1)
    assert world.says(Is.PODS_READY) == ("False", "Unschedulable")
    world.tick(1)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "DeadlineExceeded")
    world.tick()
    assert worker_pods(world) == []


def test_the_deadline_runs_while_profiling() -> None:
    world = World(spec=spec(runPolicy={"activeDeadlineSeconds": 100}))
    world.settle()
    world.tick(100)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "DeadlineExceeded")


def test_a_job_that_was_done_in_time_is_complete_though_the_operator_looks_after_the_deadline() -> None:
    world = World(spec=spec(2, None, runPolicy={"activeDeadlineSeconds": 100})).running()
    world.exit("job-worker-0")
    world.tick(1000)
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")


@pytest.mark.scenario("C7")
def test_c7_a_time_to_live_is_kept_and_also_when_the_operator_was_down_at_its_end() -> None:
    world = World(spec=spec(2, None, runPolicy={"ttlSecondsAfterFinished": 50})).running()
    world.exit("job-worker-0")
    world.settle()
    world.tick(20)
    decision = world.settle()
    assert decision.requeue_after == timedelta(seconds=30)
    assert not world.gone
    world.tick(100_000)
    assert DeleteJob(world.uid) in world.reconcile().actions


@pytest.mark.scenario("C9")
def test_c9_a_job_that_can_never_run_has_failed_with_a_completion_time() -> None:
    world = World(spec=spec(2, None)).profiled()
    world.change("job-worker-0", waiting_reason="InvalidImageName", node="node-1")
    world.settle()
    assert world.says(Is.FAILED) == ("True", "CannotStart")
    assert world.status.completion_time == world.now


# What is left behind.


@pytest.mark.scenario("C1")
@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("All", set()),
        ("Running", {"job-worker-0", "job-profiler"}),
        ("None", {"job-profiler", "job-server-0", "job-worker-0", "job-worker-1"}),
    ],
)
def test_c1_clean_pod_policy_says_what_a_failed_job_leaves(policy: str, left: set[str]) -> None:
    world = World(spec=spec(2, 1, runPolicy={"cleanPodPolicy": policy, "backoffLimit": 0})).running()
    world.exit("job-worker-0", 1)
    world.settle()
    world.tick()
    world.settle()
    assert world.says(Is.FAILED) == ("True", "BackoffLimitExceeded")
    assert set(world.pods) == left


@pytest.mark.scenario("B2")
def test_b2_servers_are_gone_within_one_reconcile_of_the_workers_being_done() -> None:
    world = World(spec=spec(2, 2)).running()
    world.exit("job-worker-0")
    decision = world.reconcile()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")
    assert {action.name for action in decision.actions if hasattr(action, "uid")} == {
        "job-server-0",
        "job-server-1",
        "job-worker-1",
    }


def test_an_end_is_final_and_its_cleaning_goes_on_after_a_death() -> None:
    world = World(spec=spec(2, 2)).running()
    world.exit("job-worker-0")
    world.reconcile(dies_after=1)
    status = world.status
    world.tick(10)
    world.settle()
    world.tick()
    world.settle()
    assert world.status == status
    assert set(world.pods) == {"job-profiler", "job-worker-0"}
    assert world.services == {}


@pytest.mark.scenario("C15")
def test_c15_the_training_container_decides_not_a_sidecar() -> None:
    world = World(spec=spec(2, None)).running()
    world.exit("job-worker-0", 0, phase="Running")
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")
    world.tick(5)
    world.settle()
    world.tick()
    assert "job-worker-0" not in world.pods  # Its sidecar would have held the GPU.


def test_a_pod_of_which_only_the_container_is_told_to_have_ended_keeps_its_log() -> None:
    world = World(spec=spec(2, None)).running()
    world.exit("job-worker-0", 0, phase="Running")
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")
    world.exit("job-worker-0", 0, phase="Succeeded")
    world.tick(5)
    world.settle()
    assert "job-worker-0" in world.pods


def test_a_sidecar_that_fails_after_the_training_container_is_done_fails_nothing() -> None:
    world = World(spec=spec(2, None)).running()
    world.exit("job-worker-0", 0, phase="Failed")
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")


# Suspension.


@pytest.mark.scenario("C8")
def test_c8_suspended_at_creation_has_no_pod_is_not_deleted_and_runs_when_resumed() -> None:
    world = World(
        spec=spec(2, None, runPolicy={"suspend": True, "ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 5})
    )
    world.settle()
    world.tick(1000)
    world.settle()
    assert (world.pods, world.gone, world.status.state) == ({}, False, "Suspended")
    assert world.says(Is.SUSPENDED) == ("True", "Suspended")
    assert world.status.start_time is None
    world.policy(suspend=False)
    world.running()
    assert world.says(Is.SUSPENDED) == ("False", "Resumed")
    assert world.status.start_time == START + timedelta(seconds=1000)
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")


def test_suspended_while_profiling_the_pod_goes_and_the_profile_is_made_after_it() -> None:
    world = World()
    world.settle()
    world.run()
    world.policy(suspend=True)
    world.settle()
    world.tick()
    world.settle()
    assert world.pods == {}
    assert world.says(Is.PROFILED) == ("False", "Suspended")
    world.policy(suspend=False)
    world.running()
    assert world.status.restarts == world.status.disruptions == 0


def test_a_profile_that_is_done_when_the_job_is_suspended_is_read_and_not_repeated() -> None:
    world = World()
    world.settle()
    world.run()
    world.exit("job-profiler")
    world.policy(suspend=True)
    world.settle()
    assert world.says(Is.SIZED)[0] == "True"
    assert set(world.pods) == {"job-profiler"}
    world.policy(suspend=False)
    world.settle()
    assert [name for name, _ in world.created].count("job-profiler") == 1
    assert worker_pods(world) == ["job-worker-0", "job-worker-1", "job-worker-2"]


def test_suspended_while_running_all_pods_go_and_the_next_attempt_has_the_same_plan() -> None:
    world = World(spec=spec(3, 2)).running()
    plan = world.status.plan
    world.policy(suspend=True)
    world.settle()
    world.tick()
    world.settle()
    assert set(world.pods) == {"job-profiler"}
    assert world.status.workers.active == 0
    world.policy(suspend=False)
    world.settle()
    assert (world.status.attempt, world.status.restarts, world.status.plan) == (2, 0, plan)
    assert worker_pods(world) == ["job-worker-0", "job-worker-1", "job-worker-2"]


def test_counts_that_change_while_suspended_are_those_of_the_next_attempt() -> None:
    world = World(spec=spec(3, 2)).running()
    world.policy(suspend=True)
    world.settle()
    world.respec(worker={"template": template(), "replicas": 5})
    world.settle()
    world.tick()
    world.settle()
    assert world.status.plan is not None
    assert world.status.plan.workers.value == 5  # A queue sees it before the job is resumed.
    world.policy(suspend=False)
    world.settle()
    assert len(worker_pods(world)) == 5
    assert [name for name, _ in world.created].count("job-profiler") == 1


def test_a_count_that_changes_while_running_waits_for_the_next_attempt() -> None:
    world = World(spec=spec(3, 2)).running()
    world.respec(worker={"template": template(), "replicas": 5})
    world.settle()
    assert len(worker_pods(world)) == 3
    assert world.status.observed_generation == 2
    crash(world)
    world.tick(60)
    world.settle()
    assert len(worker_pods(world)) == 5
    assert [name for name, _ in world.created].count("job-profiler") == 1


def test_the_deadline_stands_still_while_suspended_and_starts_anew() -> None:
    world = World(spec=spec(2, None, runPolicy={"activeDeadlineSeconds": 100})).running()
    world.tick(90)
    world.policy(suspend=True)
    world.settle()
    world.tick(1000)
    world.settle()
    world.policy(suspend=False)
    world.settle()
    world.tick(99)
    world.settle()
    assert not world.status.completion_time


def test_a_job_that_another_controller_manages_is_left_alone() -> None:
    world = World(spec=spec(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    decision = world.reconcile()
    assert (decision.actions, decision.events, decision.requeue_after) == ((), (), None)
    assert decision.status == world.status


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    world = World().running()
    world.deleting = True
    world.exit("job-worker-0", 1)
    decision = world.reconcile()
    assert (decision.actions, decision.status) == ((), world.status)


# Success.


def test_success_policy_all_workers_waits_for_every_worker() -> None:
    world = World(spec=spec(3, None, successPolicy="AllWorkers")).running()
    for index in (0, 2):
        world.exit(f"job-worker-{index}")
        world.settle()
        assert world.says(Is.COMPLETE)[0] == "False"
    world.exit("job-worker-1")
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")


@pytest.mark.scenario("C3")
def test_c3_a_finished_pod_that_is_garbage_collected_is_remembered_and_does_not_run_again() -> None:
    world = World(spec=spec(3, None, successPolicy="AllWorkers")).running()
    world.exit("job-worker-2")
    world.settle()
    world.vanish("job-worker-2")
    world.settle()
    assert world.status.workers.completed_indexes == "2"
    assert [name for name, _ in world.created].count("job-worker-2") == 1
    world.exit("job-worker-0")
    world.exit("job-worker-1")
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")


def test_the_chief_decides_where_there_is_one_and_the_evaluator_never() -> None:
    chief = {"template": template()}
    world = World(spec=spec(2, 1, framework="TensorFlow", chief=chief, evaluator=chief)).running()
    for name in ("job-worker-0", "job-evaluator-0"):
        world.exit(name)
        world.settle()
        assert world.says(Is.COMPLETE)[0] == "False"
    world.exit("job-chief-0")
    world.settle()
    assert world.says(Is.COMPLETE) == ("True", "Succeeded")


def test_mode_recommend_is_complete_with_its_plan_and_can_be_run_later() -> None:
    world = World(spec=spec(3, 2, mode="Recommend"))
    world.profiled()
    assert world.says(Is.COMPLETE) == ("True", "Recommended")
    assert world.says(Is.SIZED)[0] == "True"
    assert worker_pods(world) == []
    world.respec(mode="Run")
    world.settle()
    assert world.says(Is.COMPLETE)[0] == "False"
    assert len(worker_pods(world)) == 3
    assert [name for name, _ in world.created].count("job-profiler") == 1


def test_a_node_that_never_answers_is_waited_for_and_then_its_pod_is_removed_by_force() -> None:
    world = World(spec=spec(2, None)).running()
    world.change("job-worker-1", disruption="DeletionByTaintManager", deleting=True, gone_by=world.now)
    world.settle()
    stuck: Pod = world.pods["job-worker-1"]
    world.tick(20)
    world.pods["job-worker-1"] = stuck
    assert world.reconcile().requeue_after == timedelta(seconds=10)
    assert world.says(Is.PODS_READY)[1] == "Disrupted"
    world.tick(180)
    world.pods["job-worker-1"] = stuck
    decision = world.reconcile()
    assert worker_pods(world) == []
    assert decision.requeue_after == timedelta(seconds=100)
    said = world.condition(Is.PODS_READY).message
    assert "had to leave its node" in said
    assert said.count("job-worker-1 should have been gone at") == 1
    assert f"{world.now + timedelta(seconds=100):%H:%M:%S} it is removed by force" in said
    world.now += timedelta(seconds=100)
    world.settle()
    assert worker_pods(world) == ["job-worker-0", "job-worker-1"]
    assert (world.status.attempt, world.status.restarts, world.status.disruptions) == (2, 0, 1)


def test_attempts_only_grow() -> None:
    world = World(spec=spec(2, None, runPolicy={"backoffLimit": 5})).running()
    for _ in range(4):
        crash(world)
        world.tick(600)
        world.settle()
        world.run()
        world.settle()
    attempts = [attempt for name, attempt in world.created if name == "job-worker-0"]
    assert all(before < after for before, after in pairwise(attempts))
