"""A plan with measured runs: what is predicted comes from them, what is chosen from the rules, and both are said."""

import pytest
from muster.api.job import Goal, Scaling
from muster.api.measured import Run
from muster.cli.app import Law
from muster.sizing import CannotFit, measured, plan, plan_measured
from muster.sizing.overlap import NOTHING
from pydantic import ValidationError
from unit.sizing.reports import GBIT, efficiency, limits, point, report

MEGABYTES = 25_000_000
BATCHES = (32, 64, 128)
REPORT = report(*(point(batch, 0.1 + 0.005 * batch, 0.0) for batch in BATCHES), parameter_bytes=MEGABYTES)
ALL_REDUCE = limits(scaling=Scaling.WEAK, max_workers=16, worker_bandwidth=10 * GBIT)
SERVERS = limits(
    scaling=Scaling.WEAK,
    max_workers=16,
    max_servers=16,
    uses_servers=True,
    server_bandwidth=10 * GBIT,
    worker_bandwidth=100 * GBIT,
)
GOAL = efficiency(50)
SIZES = ((2, 1), (4, 1), (4, 4), (2, 2), (4, 2), (8, 4), (6, 6), (8, 8))
"""Workers and nodes."""


def compute(batch):
    return 0.1 + 0.005 * batch


def run(batch, workers, seconds, **more):
    return Run(mini_batch=batch, workers=workers, iteration_time_microseconds=round(seconds * 1e6), **more)


def ring_runs(seconds, sizes=SIZES, batches=BATCHES):
    """All-reduce jobs whose iteration is `seconds` of the mini-batch, the workers and the nodes."""
    return [run(batch, w, seconds(batch, w, n), nodes=n) for batch in batches for w, n in sizes]


def server_runs(gbit, sizes=((2, 1), (2, 2), (4, 2), (8, 4), (8, 2))):
    """Jobs with servers whose links are the bottleneck: Lemma 2 with a bandwidth of its own."""
    return [
        run(batch, workers, max(compute(batch), 2 * MEGABYTES * workers / servers / (gbit * GBIT)), servers=servers)
        for batch in BATCHES
        for workers, servers in sizes
    ]


def ring(batch, workers, nodes):
    """Lemma 2: the exchange over slow links, longer than compute."""
    return max(compute(batch), (1.0 if nodes > 1 else 0.02) * 2 * (workers - 1) / workers)


def optimus(batch, workers, nodes):
    return 0.005 * batch + 0.1 + 0.03 * workers / nodes + 0.05 * workers + 0.02 * nodes


def pollux(batch, workers, nodes):
    sync = 0.3 + 0.03 * (workers - 2) if nodes > 1 else 0.05 + 0.01 * (workers - 2)
    return (compute(batch) ** 1.3 + sync**1.3) ** (1 / 1.3)


def calibrated(batch, workers, nodes):
    exchange = (0.3 if nodes > 1 else 0.02) * 2 * (workers - 1) / workers * workers**0.1
    whole = compute(batch)
    return whole / 3 + ((2 * whole / 3) ** 4 + exchange**4) ** (1 / 4)


@pytest.mark.parametrize(
    ("law", "machine"), [("lemma2", ring), ("calibrated", calibrated), ("optimus", optimus), ("pollux", pollux)]
)
def test_the_law_that_errs_least_on_sizes_left_out_is_taken(law, machine):
    found = plan_measured(REPORT, GOAL, ALL_REDUCE, None, ring_runs(machine))
    assert found.fit.model == law


@pytest.mark.parametrize("law", measured.NAMES)
def test_the_law_that_is_asked_for_is_taken_whatever_it_errs(law):
    found = plan_measured(REPORT, GOAL, ALL_REDUCE, None, ring_runs(ring), law)
    assert found.fit.model == law
    assert measured.NAMES[law] in found.fit.message


def test_the_prediction_is_that_of_the_runs_and_the_rules_stand_beside_it():
    """The job states 10 Gbit/s, its runs show 2."""
    found = plan_measured(REPORT, GOAL, SERVERS, None, server_runs(gbit=2))
    workers, servers = found.workers.value, found.servers.value
    expected = max(compute(128), 2 * MEGABYTES * workers / servers / (2 * GBIT))
    predicted = found.predicted
    assert predicted.iteration_time_microseconds == pytest.approx(expected * 1e6, rel=0.01)
    assert predicted.samples_per_second == pytest.approx(128 * workers / expected, rel=0.01)
    assert float(predicted.speedup) == pytest.approx(workers * compute(128) / expected, rel=0.01)
    assert found.fit.rules == plan(REPORT, GOAL, SERVERS, None).predicted
    assert found.fit.rules.iteration_time_microseconds == pytest.approx(compute(128) * 1e6)
    assert "fitted to 15 runs and the profile" in found.fit.message


def test_what_is_chosen_is_what_the_rules_choose():
    with_runs = plan_measured(REPORT, GOAL, SERVERS, None, server_runs(gbit=2))
    alone = plan(REPORT, GOAL, SERVERS, None)
    assert with_runs.inputs != alone.inputs
    for name in ("mini_batch", "workers", "servers", "bottleneck", "global_batch"):
        assert getattr(with_runs, name) == getattr(alone, name)


def test_the_interval_holds_the_prediction_and_grows_with_what_the_runs_disagree_by():
    def reach(noise):
        runs = ring_runs(lambda batch, w, n: ring(batch, w, n) * (1 + noise * (-1) ** w * n))
        predicted = plan_measured(REPORT, GOAL, ALL_REDUCE, None, runs, "lemma2").predicted
        low, high = predicted.iteration_time_low_microseconds, predicted.iteration_time_high_microseconds
        assert low <= predicted.iteration_time_microseconds <= high
        return high / low

    assert reach(0.001) < reach(0.01) < reach(0.03)


def test_a_goal_that_the_runs_show_to_be_missed_is_said_with_what_would_meet_it():
    runs = ring_runs(lambda batch, w, _n: compute(batch) + 0.04 * (w - 1))
    goal = efficiency(75)  # so 40 (G - 1) ms may stand beside 740 of compute
    found = plan_measured(REPORT, goal, ALL_REDUCE, None, runs, "optimus")
    assert found.workers.value == 16
    [warning] = [warning for warning in found.warnings if warning.reason == "GoalNotMet"]
    assert "the goal is 75 % of linear: 7 workers would meet it." in warning.message
    fewer = limits(**{**vars(ALL_REDUCE), "workers": 7})
    chosen = plan_measured(REPORT, goal, fewer, None, runs, "optimus")
    assert "GoalNotMet" not in {one.reason for one in chosen.warnings}


def test_more_servers_are_named_before_more_workers():
    """1 Gbit/s where the job states 10: 4 workers exchange in 1.6 s by one server, compute is 0.74 s."""
    found = plan_measured(REPORT, Goal(speedup="4"), SERVERS, None, server_runs(gbit=1), "lemma2")
    assert (found.workers.value, found.servers.value) == (4, 1)
    assert any("the goal is 4 times one GPU: 3 servers would meet it" in one.message for one in found.warnings)


def test_a_goal_that_only_the_rules_see_missed_is_not_warned_of():
    """Overhead that Lemma 1 shares out, and that the runs do not have."""
    slow = report(point(64, 0.2, 0.1), point(128, 0.4, 0.1))
    own = limits(scaling=Scaling.STRONG, minibatch=64, workers=8, worker_bandwidth=10 * GBIT)
    runs = ring_runs(lambda batch, *_: 0.1 + 0.2 * batch / 64, sizes=[(2, 2), (4, 4), (6, 6)], batches=(64, 128))
    goal = efficiency(80)
    assert "GoalNotMet" in {one.reason for one in plan(slow, goal, own, None).warnings}
    assert "GoalNotMet" not in {one.reason for one in plan_measured(slow, goal, own, None, runs).warnings}


def test_alternatives_are_told_by_the_law_where_it_knows_them_and_else_marked_as_the_rules_own():
    found = plan_measured(REPORT, GOAL, SERVERS, None, server_runs(gbit=2), "lemma2")
    for one in found.alternatives:
        if one.topology == "ParameterServers":
            expected = max(compute(128), 2 * MEGABYTES * one.workers / one.servers / (2 * GBIT))
            assert one.predicted.iteration_time_microseconds == pytest.approx(expected * 1e6, rel=0.01)
            assert one.message.endswith("than planned.")
        else:
            assert one.message.startswith("By the rules alone: ")
    assert {one.topology for one in found.alternatives} >= {"ParameterServers", "AllReduce", "ColocatedServers"}


@pytest.mark.parametrize(("dense", "nodes"), [(1, 16), (2, 8), (4, 4)])
def test_the_plan_s_workers_are_taken_to_be_as_dense_as_the_densest_run(dense, nodes):
    sizes = [(2 * dense, 2), (3 * dense, 3), (4 * dense, 4)]
    found = plan_measured(REPORT, GOAL, ALL_REDUCE, None, ring_runs(ring, sizes))
    assert f"16 GPUs are taken to be on {nodes} nodes" in found.fit.message


def test_runs_of_other_workers_than_the_job_s_are_counted_by_their_gpus():
    runs = [
        run(64, w, ring(64, 4 * w, w), gpus_per_worker=4, nodes=w) for w in (2, 3, 4)
    ]  # 4 GPUs a node, one worker each
    found = plan_measured(REPORT, GOAL, ALL_REDUCE, None, runs, "lemma2")
    assert "16 GPUs are taken to be on 4 nodes" in found.fit.message


def test_an_exchange_that_nothing_hides_is_fitted_as_a_sum():
    """The iteration of a script that says `overlap: None` is compute and exchange one after the other."""
    runs = ring_runs(lambda batch, w, _n: compute(batch) + 0.1 * 2 * (w - 1) / w)
    unhidden = limits(**{**vars(ALL_REDUCE), "overlap": NOTHING})
    by = {
        name: plan_measured(REPORT, GOAL, each, None, runs, "lemma2").fit.held_out_error_percent
        for name, each in (("sum", unhidden), ("max", ALL_REDUCE))
    }
    assert by["sum"] <= 1 < by["max"]


ONE_EACH = [(w, w) for w in (2, 3, 4, 6, 8)]
MISSING = {
    "nothing": ([], None, "have 0 sizes of more than one GPU, 0 of them across nodes; a law needs 3, 2 of them across"),
    "one GPU alone": ([run(64, 1, 0.4)], None, "have 0 sizes of more than one GPU"),
    "two sizes": (ring_runs(ring, [(2, 2), (4, 4)]), None, "have 2 sizes of more than one GPU.* Measure 1 more"),
    "three runs of one size": ([run(64, 2, 0.4)] * 3, None, "have 1 size of more than one GPU"),
    "no run across nodes": (
        ring_runs(ring, [(2, 1), (3, 1), (4, 1)]) + ring_runs(ring, [(2, 2)]),
        None,
        "have 4 sizes of more than one GPU, 1 of them across nodes",
    ),
    "Optimus, one GPU a node": (ring_runs(ring, ONE_EACH), "optimus", "Optimus's law has 5 terms .* tells 3 of them"),
    "Optimus, once one is left out": (
        ring_runs(optimus, [(2, 2), (2, 1), (4, 2)]),
        "optimus",
        "with a placement left out as a test, Optimus's law has 5 terms",
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_runs_that_tell_too_little_are_refused_with_what_is_missing(name):
    runs, law, told = MISSING[name]
    with pytest.raises(CannotFit, match=told):
        plan_measured(REPORT, GOAL, ALL_REDUCE, None, runs, law)


def test_a_law_that_cannot_be_fitted_is_named_with_its_reason_beside_those_that_can():
    found = plan_measured(REPORT, GOAL, SERVERS, None, server_runs(gbit=2))
    assert "pollux not: Pollux's law knows no parameter servers" in found.fit.message
    with pytest.raises(CannotFit, match="no parameter servers"):
        plan_measured(REPORT, GOAL, SERVERS, None, server_runs(gbit=2), "pollux")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"workers": 2, "nodes": 3}, "2 workers cannot be on 3 nodes"),
        ({"workers": 2, "servers": 1, "nodes": 2}, "leave nodes out of a run with servers"),
        ({"workers": 0}, "greater than or equal to 1"),
        ({"workers": 2, "gpus": 2}, "Extra inputs"),
    ],
)
def test_a_run_that_cannot_be_is_refused(fields, told):
    with pytest.raises(ValidationError, match=told):
        Run.model_validate({"miniBatch": 64, "iterationTimeMicroseconds": 1000, **fields})


def test_the_command_line_knows_the_same_laws():
    assert [law.value for law in Law] == list(measured.NAMES)


def test_a_speedup_goal_is_judged_by_the_runs_too():
    runs = ring_runs(lambda batch, _w, _n: compute(batch) * 1.5, sizes=[(w, w) for w in (2, 3, 4, 6, 8)])
    found = plan_measured(REPORT, Goal(speedup="4"), ALL_REDUCE, None, runs)
    assert found.workers.value == 4
    assert any("6 workers would meet it" in warning.message for warning in found.warnings)


@pytest.mark.parametrize(("times", "warns"), [(1, False), (50, True)])
def test_runs_of_another_script_than_the_profile_are_warned_of(times, warns):
    runs = ring_runs(lambda batch, *_: times * compute(batch))
    found = plan_measured(REPORT, GOAL, ALL_REDUCE, None, runs)
    assert ("RunsDisagree" in [warning.reason for warning in found.warnings]) == warns


def test_no_more_is_warned_of_than_a_plan_can_hold():
    warned = [{"reason": f"Reason{number}", "message": "x"} for number in range(20)]
    found = plan_measured(
        REPORT.model_copy(update={"warnings": report(point(32, 1.0, 0.0), warnings=warned).warnings}),
        Goal(speedup="15"),
        ALL_REDUCE,
        None,
        ring_runs(lambda batch, workers, _: compute(batch) * 50 * workers),
    )
    assert [warning.reason for warning in found.warnings[:2]] == ["GoalNotMet", "RunsDisagree"]
    assert len(found.warnings) == 16
