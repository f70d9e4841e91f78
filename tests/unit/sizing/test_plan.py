"""The plan: each number by its rule, the user's own over it, and every bound in words."""

import pytest
from muster.api.inventory import Inventory, Node
from muster.api.job import Goal, Scaling
from muster.sizing import Infeasible, plan
from unit.sizing.reports import GBIT, efficiency, limits, point, report

ALEXNET_BYTES = 243_860_896


@pytest.mark.parametrize(
    ("percent", "compute", "overhead", "gpus"),
    [
        (50, 0.2, 0.01, 22),
        (80, 0.11, 0.01, 4),
        (80, 0.2, 0.01, 6),
        (80, 0.1, 0.01, 3),
        (90, 0.1, 0.01, 2),
        (80, 0.1, 0.001, 26),
    ],
)
def test_an_efficiency_goal_takes_the_most_gpus_that_lemma_1_allows(percent, compute, overhead, gpus):
    found = plan(report(point(64, compute, overhead)), efficiency(percent), limits(), None)
    assert (found.workers.value, found.workers.recommended, found.workers.limited_by) == (gpus, gpus, "Efficiency")
    assert found.predicted.efficiency_percent >= percent


@pytest.mark.parametrize(
    ("speedup", "ratio", "gpus"),
    [("4", 0.2, 10), ("11", 0.05, 22), ("2", 0.1, 3), ("8", 0.1, 27), ("8", 0.05, 13)],
)
def test_a_speedup_goal_takes_the_fewest_gpus_that_reach_it(speedup, ratio, gpus):
    found = plan(report(point(64, 0.1, 0.1 * ratio)), Goal(speedup=speedup), limits(), None)
    assert found.workers.value == gpus


def test_a_speedup_beyond_the_limit_of_the_overhead_is_refused_with_what_would_do():
    with pytest.raises(Infeasible, match=r"no number of GPUs is 6 times.*With an overhead of at most") as refusal:
        plan(report(point(64, 0.1, 0.02)), Goal(speedup="8"), limits(), None)
    assert refusal.value.reason == "SpeedupNotReached"


@pytest.mark.parametrize(("compute", "servers"), [(0.5, 7), (1.0, 4)])
def test_servers_are_the_fewest_that_hide_the_exchange(compute, servers):
    found = plan(
        report(point(64, compute, 0.0), parameter_bytes=ALEXNET_BYTES),
        efficiency(80),
        limits(
            uses_servers=True,
            scaling=Scaling.WEAK,
            workers=8,
            server_bandwidth=10 * GBIT,
            worker_bandwidth=10 * GBIT,
        ),
        None,
    )
    assert (found.servers.value, found.servers.limited_by) == (servers, "Bandwidth")


def test_a_goal_that_needs_more_gpus_than_the_cluster_has_says_so():
    cluster = Inventory((Node("a", 4, 0, 0),))
    with pytest.raises(Infeasible, match="needs 13 GPUs, the cluster has 4"):
        plan(report(point(64, 0.2, 0.01)), Goal(speedup="8"), limits(), cluster)
    with pytest.raises(Infeasible, match="needs 64 GPUs, the cluster has 4"):
        plan(report(point(64, 0.2, 0.01)), efficiency(80), limits(workers=64), cluster)


def test_workers_without_gpus_are_not_bound_by_the_clusters_gpus():
    found = plan(report(point(64, 0.2, 0.01)), efficiency(80), limits(uses_gpus=False), Inventory())
    assert found.workers.value == 6
    assert found.gpus_per_worker == 0


def test_the_users_counts_win_and_the_recommendation_stands_beside():
    found = plan(
        report(point(64, 1.0, 0.05), parameter_bytes=ALEXNET_BYTES),
        efficiency(50),
        limits(uses_servers=True, workers=6, servers=2, minibatch=64, server_bandwidth=10 * GBIT),
        None,
    )
    assert (found.workers.value, found.servers.value, found.mini_batch.value) == (6, 2, 64)
    assert found.servers.recommended == 3
    assert {found.workers.limited_by, found.servers.limited_by, found.mini_batch.limited_by} == {"User"}
    assert "UserServers" in {warning.reason for warning in found.warnings}
