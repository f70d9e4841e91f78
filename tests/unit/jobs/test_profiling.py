"""From a spec to a plan: the profiling pod's life, its report, and what sizing makes of it."""

from datetime import timedelta

import pytest
from model.world import World, report, spec, template
from muster.api.status import ConditionType as Is
from muster.jobs.model import Progress, ReadProgress, ReadReport, ReportProblem
from muster.sizing import Infeasible


def profilers(world: World) -> int:
    return [name for name, _ in world.created].count("job-profiler")


@pytest.mark.scenario("C12")
def test_c12_a_bad_image_in_the_profile_is_told_at_once_and_fails_at_the_profiles_deadline() -> None:
    world = World(spec=spec(profile={"activeDeadlineSeconds": 100}))
    world.settle()
    world.change(
        "job-profiler", waiting_reason="ImagePullBackOff", waiting_message="no such tag", node="a", started=world.now
    )
    world.settle()
    assert world.says(Is.PROFILED) == ("False", "ImageUnavailable")
    assert "no such tag" in world.condition(Is.PROFILED).message
    world.tick(131)  # The kubelet would have ended it; here it does not answer.
    world.settle()
    assert world.says(Is.FAILED) == ("True", "ProfilingFailed")
    assert "no such tag" in world.condition(Is.FAILED).message
    world.tick()
    assert world.pods == {}


@pytest.mark.scenario("A4")
def test_a_profile_that_the_kubelet_ends_at_its_deadline_fails_the_job() -> None:
    world = World(profile=ReportProblem("no report in the log"))
    world.settle()
    world.run()
    world.exit("job-profiler", 137)
    world.change("job-profiler", reason="DeadlineExceeded")
    world.settle()
    assert world.says(Is.FAILED) == ("True", "ProfilingFailed")
    assert "profile.activeDeadlineSeconds" in world.condition(Is.FAILED).message


def test_how_far_a_profile_has_come_is_asked_for_now_and_then() -> None:
    world = World()
    world.settle()
    world.run()
    assert world.reconcile().requeue_after == timedelta(seconds=15)
    world.now += timedelta(seconds=15)
    assert ReadProgress("job-profiler", world.pods["job-profiler"].uid) in world.reconcile().actions
    decision = world.reconcile()
    assert world.condition(Is.PROFILED).message == "job-profiler is profiling the script: mini-batch 32 (2 of 4)"
    assert (decision.actions, decision.requeue_after) == ((), timedelta(seconds=15))


def test_what_the_profiler_of_another_try_said_is_not_told() -> None:
    world = World()
    world.settle()
    world.run()
    world.progress = Progress("another-uid", "mini-batch 32 (2 of 4)", world.now)
    world.reconcile()
    assert world.condition(Is.PROFILED).message == "job-profiler is profiling the script"


def test_a_profile_that_waits_for_a_node_has_not_begun() -> None:
    world = World()
    world.settle()
    world.change("job-profiler", unschedulable="0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    world.tick(100_000)
    world.settle()
    assert world.says(Is.PROFILED) == ("False", "Unschedulable")
    assert world.says(Is.FAILED)[0] == "False"


def test_a_profiler_that_says_why_it_failed_is_believed_at_once() -> None:
    world = World(profile=ReportProblem("NoIterations: the script ended without fetching a batch"))
    world.settle()
    world.exit("job-profiler", 1)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "ProfilingFailed")
    assert "without fetching a batch" in world.condition(Is.FAILED).message
    assert (profilers(world), world.status.restarts) == (1, 0)


def test_a_profiler_that_was_killed_is_tried_again_within_the_backoff_limit() -> None:
    world = World(spec=spec(runPolicy={"backoffLimit": 1}), profile=ReportProblem("no report"))
    for _ in range(2):
        world.settle()
        world.run()
        world.exit("job-profiler", 139)
        world.settle()
        world.tick(100)
    assert (profilers(world), world.status.restarts) == (2, 1)
    assert world.says(Is.FAILED) == ("True", "BackoffLimitExceeded")


@pytest.mark.scenario("C4")
def test_c4_a_profiler_that_is_evicted_is_tried_again_without_counting() -> None:
    world = World(spec=spec(runPolicy={"backoffLimit": 0}))
    world.settle()
    world.change("job-profiler", phase="Failed", reason="Evicted", message="low on memory")
    world.settle()
    assert world.says(Is.PROFILED) == ("False", "ProfileRetry")
    assert world.pods == {}
    world.tick(10)
    world.running()
    assert (world.status.restarts, world.status.disruptions) == (0, 1)
    assert profilers(world) == 2


def test_a_profiler_that_somebody_deletes_is_made_again() -> None:
    world = World()
    world.settle()
    world.vanish("job-profiler")
    world.running()
    assert world.says(Is.PODS_READY)[0] == "True"


def test_a_report_counts_whatever_else_the_pod_did() -> None:
    world = World()
    world.settle()
    world.run()
    world.exit("job-profiler", 0, phase="Running")  # A sidecar runs on.
    world.settle()
    assert world.says(Is.PROFILED) == ("True", "Profiled")
    world.tick()
    assert "job-profiler" not in world.pods
    assert "job-profile" in world.config_maps


@pytest.mark.scenario("A4")
def test_a4_a_candidate_that_does_not_fit_is_left_out_and_the_rest_goes_on() -> None:
    world = World(profile=report(32, 64, failing=(128,))).running()
    assert world.status.profile is not None
    assert [(point.mini_batch, point.fits) for point in world.status.profile.points] == [
        (32, True),
        (64, True),
        (128, False),
    ]
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")


@pytest.mark.scenario("A4")
def test_a4_no_candidate_fits_fails_the_job() -> None:
    world = World(profile=report(failing=(64, 128)))
    world.settle()
    world.exit("job-profiler")
    world.settle()
    assert world.says(Is.FAILED) == ("True", "ProfilingFailed")
    assert "64: out of memory; 128: out of memory" in world.condition(Is.FAILED).message


@pytest.mark.scenario("A5")
def test_a5_an_infeasible_goal_says_what_would_satisfy_it_and_makes_no_workers() -> None:
    world = World(spec=spec(None, None, goal={"speedup": "100"})).profiled()
    assert world.says(Is.SIZED) == ("False", "Infeasible")
    assert world.says(Is.FAILED) == ("True", "Infeasible")
    assert "100" in world.condition(Is.FAILED).message
    assert set(world.pods) == {"job-profiler"}


@pytest.mark.scenario("A1")
def test_a1_the_users_count_wins_and_the_recommendation_stands_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(spec=spec(6, None, goal={"speedup": "1.5"})).profiled()
    assert world.says(Is.SIZED) == ("True", "SizedWithUserValues")
    assert world.status.plan is not None
    recommended = world.status.plan.workers.recommended
    assert f"workers: 6 (recommended: {recommended})" in world.condition(Is.SIZED).message
    assert sum("worker" in name for name in world.pods) == 6
    assert any(event.reason == "SizedWithUserValues" for event in world.events)


# A report that exists before.


def test_a_report_in_a_config_map_needs_no_pod() -> None:
    world = World(spec=spec(2, None, profile={"from": "ConfigMap", "configMapName": "old"}), config_maps={"old": {}})
    world.settle()
    assert set(world.pods) == {"job-worker-0", "job-worker-1"}
    assert world.status.profile is not None
    assert world.status.profile.source == "ConfigMap"
    assert set(world.config_maps) == {"old"}


def test_a_config_map_that_comes_later_is_waited_for() -> None:
    world = World(spec=spec(2, None, profile={"from": "ConfigMap", "configMapName": "old"}))
    world.settle()
    assert world.says(Is.PROFILED) == ("False", "ReportUnreadable")
    assert "old does not exist" in world.condition(Is.PROFILED).message
    read = world.profiles_read
    world.tick(10)
    assert world.settle().requeue_after == timedelta(seconds=20)
    assert world.profiles_read == read
    world.config_maps["old"] = {}
    world.tick(20)
    world.settle()
    assert world.says(Is.PROFILED) == ("True", "Profiled")


def test_a_config_map_that_never_comes_fails_the_job_at_the_profiles_deadline() -> None:
    profile = {"from": "ConfigMap", "configMapName": "old", "activeDeadlineSeconds": 60}
    world = World(spec=spec(2, None, profile=profile))
    world.settle()
    world.tick(61)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "ProfilingFailed")


def test_suspended_with_a_report_at_hand_the_plan_is_made_and_no_pod() -> None:
    profile = {"from": "ConfigMap", "configMapName": "old"}
    world = World(spec=spec(2, None, profile=profile, runPolicy={"suspend": True}), config_maps={"old": {}})
    world.settle()
    assert world.says(Is.SIZED)[0] == "True"
    assert (world.status.state, world.pods) == ("Suspended", {})


# Planned anew.


def test_a_changed_goal_is_planned_anew_from_the_kept_report() -> None:
    world = World(spec=spec(None, None, goal={"speedup": "2"})).running()
    assert world.status.plan is not None
    before = world.status.plan.workers.value
    world.policy(suspend=True)
    world.settle()
    world.tick()
    world.pods.clear()
    world.memory = None
    world.respec(goal={"speedup": "4"})
    world.policy(suspend=False)
    world.settle()
    assert world.status.plan.workers.value > before
    assert profilers(world) == 1


def test_a_changed_goal_without_any_report_left_is_profiled_anew() -> None:
    world = World(spec=spec(None, None, goal={"speedup": "2"})).running()
    world.policy(suspend=True)
    world.settle()
    world.tick()
    world.pods.clear()
    world.config_maps.clear()
    world.memory = None
    world.respec(goal={"speedup": "4"})
    world.policy(suspend=False)
    world.running()
    assert profilers(world) == 2
    assert world.says(Is.PODS_READY)[0] == "True"


def test_a_plan_that_stands_is_never_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().running()

    def forbidden(*_: object) -> None:
        raise Infeasible("Test", "planned again")

    monkeypatch.setattr("muster.sizing.plan", forbidden)
    world.memory = None
    world.exit("job-worker-1", 1)
    world.settle()
    world.tick(60)
    world.settle()
    assert world.status.attempt == 2
    assert world.says(Is.FAILED)[0] == "False"


# A death at any point.


@pytest.mark.scenario("D3")
@pytest.mark.parametrize("dies_after", range(8))
def test_d3_killed_between_profile_plan_and_pods_there_is_one_profile_and_one_plan(dies_after: int) -> None:
    world = World(spec=spec(3, 2))
    world.settle()
    world.run()
    world.exit("job-profiler")
    for _ in range(4):
        world.reconcile(dies_after=dies_after)
    world.settle()
    world.run()
    world.settle()
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")
    assert profilers(world) == 1
    assert len(world.created) == len(set(world.created)) == 6
    assert "job-profile" in world.config_maps


def test_a_report_of_an_earlier_profiling_pod_is_not_taken_for_the_present_ones() -> None:
    world = World()
    world.settle()
    world.exit("job-profiler")
    world.memory = (ReportProblem("of the pod before"), "another-uid")
    decision = world.reconcile()
    assert decision.actions == (ReadReport(pod="job-profiler"),)


def test_a_job_without_a_command_cannot_be_profiled_and_says_so() -> None:
    bare = template()
    del bare["spec"]["containers"][0]["command"]
    world = World(spec=spec(2, None, worker={"template": bare}, profile={"from": "Reuse"}))
    world.settle()
    assert world.says(Is.FAILED) == ("True", "CommandMissing")
    assert "containers[train].command is missing" in world.condition(Is.FAILED).message
