"""The plan: each number by its rule, the user's own over it, and every bound in words."""

from dataclasses import replace

import pytest
from muster.api.inventory import Inventory, Node
from muster.api.job import Framework, Goal, Scaling, Workspace
from muster.api.report import LargestMiniBatch
from muster.sizing import Infeasible, plan
from muster.sizing.network import Network
from unit.sizing.reports import GBIT, efficiency, limits, point, report, timing

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
    with pytest.raises(
        Infeasible, match=r"all GPUs together stay below 6 times one.*With an overhead of at most"
    ) as refusal:
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


@pytest.mark.scenario("A1")
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


def test_strong_scaling_shares_one_gpus_batch_and_servers_grow_as_the_square_of_workers():
    measured = report(point(64, 1.0, 0.0), parameter_bytes=10_000_000)

    def servers(workers):
        wanted = limits(uses_servers=True, workers=workers, server_bandwidth=GBIT, worker_bandwidth=100 * GBIT)
        return plan(measured, efficiency(80), wanted, None)

    assert [servers(n).servers.recommended for n in (2, 4, 8, 16)] == [1, 3, 11, 41]
    four = servers(4)
    assert (four.mini_batch.value, four.global_batch) == (16, 64)


def test_weak_scaling_keeps_the_batch_of_each_gpu_and_loses_nothing_to_a_constant_overhead():
    found = plan(report(point(64, 0.2, 0.01)), efficiency(99), limits(scaling=Scaling.WEAK, max_workers=16), None)
    assert (found.workers.value, found.workers.limited_by) == (16, "MaxReplicas")
    assert (found.mini_batch.value, found.global_batch) == (64, 1024)


def test_a_mini_batch_of_the_users_own_stays_at_every_count_and_lemma_1_still_governs():
    found = plan(report(point(64, 0.2, 0.01)), efficiency(50), limits(minibatch=64), None)
    assert (found.mini_batch.value, found.workers.value, found.global_batch) == (64, 22, 22 * 64)
    assert "MiniBatchFixed" in reasons(found)


def test_a_script_that_keeps_its_own_batch_is_planned_with_it_and_told():
    found = plan(report(point(48, 0.2, 0.01), miniBatchApplied=False), efficiency(80), limits(), None)
    assert (found.mini_batch.value, found.mini_batch.limited_by) == (48, "Script")
    assert "MiniBatchNotApplied" in reasons(found)


def test_measured_smaller_batches_take_the_place_of_lemma_1s_assumption():
    dear = report(point(16, 0.1, 0.01), point(64, 0.2, 0.01))
    found = plan(dear, efficiency(80), limits(), None)
    assert found.workers.value < 6
    assert "Lemma 1 alone allows 6" in found.workers.message
    proportional = report(point(16, 0.05, 0.0025), point(64, 0.2, 0.0099))
    assert plan(proportional, efficiency(80), limits(), None).workers.value == 6


OUT_OF_MEMORY = {"miniBatch": 32, "fits": False, "problem": "CUDA out of memory", "memory": {"peakBytes": 17 << 30}}


@pytest.mark.scenario("A7")
def test_memory_is_not_taken_to_grow_with_the_batch():
    # 32 picked an algorithm that needs more memory than 64 does.
    measured = report(point(16, 0.1, 0.0), OUT_OF_MEMORY, point(64, 0.2, 0.0, peak=8 << 30))
    found = plan(measured, efficiency(100), limits(max_workers=1), None)
    assert (found.mini_batch.value, found.mini_batch.limited_by) == (64, "Candidates")


@pytest.mark.scenario("A6")
def test_the_fastest_batch_that_fits_is_chosen_with_a_margin_of_memory():
    tight = point(64, 0.15, 0.0, peak=int(15.6 * 2**30))
    found = plan(report(point(16, 0.1, 0.0), point(32, 0.15, 0.0), tight), efficiency(100), limits(max_workers=1), None)
    assert (found.mini_batch.value, found.mini_batch.limited_by) == (32, "Memory")
    assert "64 needs 15.6 GiB of 16 GiB and leaves less than 5 % free" in found.mini_batch.message


@pytest.mark.parametrize(("verified", "how"), [(True, "tried"), (False, "predicted")])
def test_the_largest_batch_that_fits_is_told_with_the_batch_that_memory_or_the_candidates_limit(verified, how):
    largest = LargestMiniBatch(mini_batch=50, verified=verified)
    for points in ((point(32, 0.15, 0.0), OUT_OF_MEMORY | {"miniBatch": 64}), (point(32, 0.15, 0.0),)):
        measured = report(*points).model_copy(update={"largest_mini_batch": largest})
        found = plan(measured, efficiency(100), limits(max_workers=1), None)
        assert found.mini_batch.message.endswith(f"; the largest that fits is 50, as {how}.")


def test_a_slower_larger_batch_is_not_chosen():
    found = plan(report(point(32, 0.1, 0.0), point(64, 0.3, 0.0)), efficiency(100), limits(max_workers=1), None)
    assert (found.mini_batch.value, found.mini_batch.limited_by) == (32, "Throughput")


def test_when_no_batch_fits_the_refusal_names_each():
    with pytest.raises(Infeasible, match="32 needs 17 GiB of 16 GiB") as refusal:
        plan(report(OUT_OF_MEMORY), efficiency(80), limits(), None)
    assert refusal.value.reason == "NoMiniBatchFits"


@pytest.mark.parametrize(
    ("goal", "workers", "limited_by"),
    [
        (Goal(deadline={"seconds": 3600, "samples": 10_000_000}), 10, "Deadline"),
        (Goal(cost={"gpuSeconds": 40_000, "samples": 10_000_000}), 5, "Cost"),
        (Goal(speedup="7.5"), 8, "Speedup"),
    ],
)
def test_the_other_goals(goal, workers, limited_by):
    scaling = Scaling.STRONG if goal.cost else Scaling.WEAK
    found = plan(report(point(64, 0.2, 0.01)), goal, limits(scaling=scaling), None)
    assert (found.workers.value, found.workers.limited_by) == (workers, limited_by)


@pytest.mark.scenario("A5")
@pytest.mark.parametrize(
    ("goal", "wanted", "reason", "words"),
    [
        (Goal(efficiencyPercent=90), {"gpus_per_worker": 8}, "EfficiencyNotReached", "already 1 worker of 8 GPUs"),
        (Goal(cost={"gpuSeconds": 10, "samples": 10**6}), {}, "CostNotReached", "Set the goal to"),
        (Goal(speedup="8"), {"max_workers": 4}, "SpeedupNotReached", "it needs 13 GPUs, worker.maxReplicas is 4"),
        (Goal(deadline={"seconds": 1, "samples": 10**6}), {}, "DeadlineNotReached", "Nearest: 64 workers"),
    ],
)
def test_an_impossible_goal_names_the_bound_the_nearest_plan_and_a_way_on(goal, wanted, reason, words):
    with pytest.raises(Infeasible) as refusal:
        plan(report(point(64, 0.2, 0.01)), goal, limits(**wanted), None)
    assert refusal.value.reason == reason
    assert words in refusal.value.message


def test_workers_whose_own_links_bind_get_the_least_bad_plan_and_a_warning():
    links = {"server_bandwidth": 10 * GBIT, "worker_bandwidth": 10 * GBIT}
    measured = report(point(64, 0.25, 0.0), parameter_bytes=ALEXNET_BYTES)
    found = plan(measured, efficiency(50), limits(uses_servers=True, scaling=Scaling.WEAK, workers=8, **links), None)
    assert (found.servers.value, found.servers.limited_by) == (8, "WorkerLink")
    assert found.predicted.efficiency_percent == 64
    assert "WorkerLinkBinds" in reasons(found)


@pytest.mark.scenario("A9")
def test_a_tensor_that_dominates_caps_the_servers_and_is_named():
    tensors = (900_000, 25_000, 25_000, 25_000, 25_000)
    measured = report(point(64, 0.5, 0.0), parameter_bytes=4_000_000_000, tensors=tensors)
    wanted = limits(
        framework=Framework.TENSORFLOW, uses_servers=True, scaling=Scaling.WEAK, workers=4, server_bandwidth=100 * GBIT
    )
    wide = plan(measured, efficiency(10), replace(wanted, worker_bandwidth=1e12), None)
    assert (wide.servers.value, wide.servers.limited_by) == (5, "Placement")
    assert "LargestTensorDominates" in reasons(wide)


def test_an_all_reduce_is_counted_only_where_the_network_is_known():
    measured = report(point(64, 0.1, 0.001), parameter_bytes=1_000_000_000)
    unknown = plan(measured, efficiency(80), limits(scaling=Scaling.WEAK), None)
    assert "ExchangeNotCounted" in reasons(unknown)
    assert unknown.workers.value == 64
    known = plan(measured, efficiency(80), limits(scaling=Scaling.WEAK, worker_bandwidth=10 * GBIT), None)
    assert known.workers.value == 1
    assert known.servers.value == 0


NETWORK = {
    "rates": [
        {"streams": 1, "upBytesPerSecond": 600_000_000, "downBytesPerSecond": 700_000_000},
        {"streams": 4, "upBytesPerSecond": 1_000_000_000, "downBytesPerSecond": 900_000_000},
    ],
    "fanInBytesPerSecond": 800_000_000,
    "latencyNanoseconds": 50_000,
}


def test_bandwidths_are_the_users_else_measured_else_assumed_aloud():
    measured = report(point(64, 1.0, 0.05), network=NETWORK)
    network = Network.of(measured, limits(uses_servers=True))
    assert (network.server, network.worker, network.latency) == (8e8, 9e8, 5e-5)
    own = Network.of(measured, limits(uses_servers=True, server_bandwidth=1.25e9))
    assert own.server == 1.25e9
    assert [warning.reason for warning in own.warnings] == ["BandwidthBelowName"]
    assumed = plan(report(point(64, 1.0, 0.05)), efficiency(80), limits(uses_servers=True), None)
    assert reasons(assumed).count("BandwidthAssumed") == 2


@pytest.mark.scenario("A3")
@pytest.mark.parametrize(
    ("measured", "wanted"),
    [
        (report(point(64, 200.0 * 60, 0.01)), {}),
        (report(point(64, 0.01, 0.5)), {}),
        (report(point(64, 0.2, 0.01), parameter_bytes=0), {}),
        (report(point(64, 0.2, 0.01)), {"uses_servers": True, "server_bandwidth": 1e4, "max_servers": 8}),
    ],
)
def test_values_outside_a_sane_range_are_flagged_and_ask_for_no_thousand_servers(measured, wanted):
    found = plan(measured, efficiency(80), limits(**wanted), None)
    assert "ValueOutOfRange" in reasons(found)
    assert found.servers.value <= 8


def test_unsteady_points_and_batches_never_measured_are_named():
    found = plan(report(point(64, 0.2, 0.01, steady=False)), efficiency(80), limits(minibatch=128), None)
    assert found.mini_batch.value == 128
    assert "BeyondMeasuredRange" in reasons(found)
    unsteady = plan(report(point(64, 0.2, 0.01, steady=False)), efficiency(80), limits(), None)
    assert "NotSteady" in reasons(unsteady)


def test_an_interval_of_the_overhead_is_carried_to_the_workers_and_to_the_iteration():
    measured = report({**point(64, 0.2, 0.01), "overheadTime": timing(0.01, spread=0.2)})
    found = plan(measured, efficiency(80), limits(), None)
    assert (found.workers.recommended_low, found.workers.value, found.workers.recommended_high) == (5, 6, 7)
    predicted = found.predicted
    assert predicted.iteration_time_low_microseconds < predicted.iteration_time_microseconds
    assert predicted.iteration_time_high_microseconds > predicted.iteration_time_microseconds


def test_the_bottleneck_is_the_step_that_waits_longest():
    parts = {"loadNanoseconds": 7_000_000, "hostToDeviceNanoseconds": 2_000_000}
    found = plan(report(point(64, 0.2, 0.01, overheadParts=parts)), efficiency(80), limits(), None)
    assert (found.bottleneck.step, found.bottleneck.exposed_microseconds) == ("LoadData", 7000)
    slow = limits(uses_servers=True, workers=4, servers=1, server_bandwidth=GBIT)
    exchange = plan(report(point(64, 0.2, 0.01), parameter_bytes=10**9), efficiency(80), slow, None)
    assert exchange.bottleneck.step == "Exchange"
    assert plan(report(point(64, 0.2, 0.0)), efficiency(80), limits(workers=1), None).bottleneck is None


def test_alternatives_are_one_server_less_and_more_and_the_other_topologies():
    wanted = limits(uses_servers=True, workers=8, scaling=Scaling.WEAK, server_bandwidth=10 * GBIT)
    found = plan(report(point(64, 0.5, 0.01), parameter_bytes=ALEXNET_BYTES), efficiency(80), wanted, None)
    others = [(one.topology, one.servers) for one in found.alternatives]
    assert others == [
        ("ParameterServers", 6),
        ("ParameterServers", 8),
        ("AllReduce", 0),
        ("ColocatedServers", 8),
        ("SplitServers", 8),
    ]
    assert found.alternatives[0].predicted.iteration_time_microseconds > found.predicted.iteration_time_microseconds


@pytest.mark.scenario("A10", "B3")
def test_a_cluster_bounds_the_workers_by_whole_workers_on_its_nodes_and_its_quota():
    nodes = (Node("a", 4, 0, 0), Node("b", 3, 0, 0), Node("c", 2, 0, 0))
    wanted = limits(gpus_per_worker=2)
    free = plan(report(point(64, 0.2, 0.0)), efficiency(80), wanted, Inventory(nodes))
    assert (free.workers.value, free.workers.limited_by, free.nodes) == (4, "Inventory", 3)
    bounded = plan(report(point(64, 0.2, 0.0)), efficiency(80), wanted, Inventory(nodes, gpu_quota=5))
    assert bounded.workers.value == 2
    assert "quota leaves 5" in bounded.workers.message
    with pytest.raises(Infeasible, match="One worker needs 8 GPUs: the cluster has 9") as refusal:
        plan(report(point(64, 0.2, 0.0)), efficiency(80), limits(gpus_per_worker=8), Inventory(nodes))
    assert refusal.value.reason == "InsufficientGPUs"


CONVOLUTION = {
    "shape": "3x3",
    "direction": "forward",
    "miniBatch": 64,
    "algorithms": [
        {"name": "gemm", "kind": "GEMM", "timeNanoseconds": 20_000_000, "workspaceBytes": 0},
        {"name": "fft", "kind": "FFT", "timeNanoseconds": 10_000_000, "workspaceBytes": 1 << 30},
        {"name": "winograd", "kind": "Winograd", "timeNanoseconds": 5_000_000, "workspaceBytes": 8 << 30},
    ],
}


def test_a_workspace_limit_is_nothing_that_a_cpu_can_be_given():
    on_cpu = {"kind": "cpu", "name": "test", "memoryBytes": 16 << 30}
    measured = report(point(64, 0.2, 0.0, peak=12 << 30), convolutions=[CONVOLUTION], device=on_cpu)
    assert plan(measured, efficiency(80), limits(workspace=Workspace.SHARED), None).convolution is None


@pytest.mark.scenario("A8")
def test_convolutions_get_the_workspace_limit_that_memory_leaves_room_for():
    measured = report(point(64, 0.2, 0.0, peak=12 << 30), convolutions=[CONVOLUTION, CONVOLUTION])
    found = plan(measured, efficiency(80), limits(workspace=Workspace.SHARED), None).convolution
    assert (found.workspace_limit_bytes, found.saved_percent) == (1 << 30, 50)
    assert [(one.workspace_bytes, one.saved_percent) for one in found.tradeoff] == [
        (0, 0),
        (1 << 30, 50),
        (8 << 30, 75),
    ]
    off = plan(measured, efficiency(80), limits(workspace=Workspace.OFF), None)
    assert off.convolution is None


def test_where_separate_workspaces_would_do_better_than_one_limit_the_plan_says_so():
    measured = report(
        point(64, 0.2, 0.0, peak=int(13.7 * 2**30)),
        convolutions=[CONVOLUTION, CONVOLUTION | {"direction": "inputGradient"}],
    )
    found = plan(measured, efficiency(80), limits(workspace=Workspace.SEPARATE), None).convolution
    assert (found.workspace_limit_bytes, found.saved_percent) == (0, 0)
    assert "Free choice of each algorithm would take 25 %" in found.message


def test_faster_algorithms_than_those_that_were_timed_shorten_the_compute_time():
    slow = CONVOLUTION | {"used": "gemm"}
    measured = report(point(64, 0.2, 0.0, peak=12 << 30), convolutions=[slow])
    found = plan(measured, efficiency(80), limits(workers=1), None)
    assert found.predicted.iteration_time_microseconds == 190_000


def test_the_measured_peak_is_held_against_the_layer_formula():
    layers = [{"name": "conv", "outputs": 1 << 22, "parameters": 1 << 20}]
    found = plan(report(point(64, 0.2, 0.0, peak=3 << 30), layers=layers), efficiency(80), limits(), None)
    assert "Measured peak 3 GiB, 1.49 of the layer formula's 2.01 GiB" in found.mini_batch.message


def test_the_digest_is_of_the_inputs_and_of_nothing_else():
    measured = report(point(64, 0.2, 0.01))
    first = plan(measured, efficiency(80), limits(), Inventory((Node("a", 8, 1, 1),)))
    renamed = plan(measured, efficiency(80), limits(), Inventory((Node("b", 8, 2, 2), Node("cpu", 0, 1, 1))))
    assert first == renamed
    assert first.inputs.startswith("sha256:")
    assert len(first.inputs) == 71
    assert plan(measured, efficiency(81), limits(), None).inputs != first.inputs


def reasons(found):
    return [warning.reason for warning in found.warnings]


def test_a_batch_that_leaves_too_little_memory_free_is_better_than_none():
    tight = report(point(64, 0.2, 0.01, peak=int(15.6 * 2**30)), OUT_OF_MEMORY | {"miniBatch": 128})
    found = plan(tight, efficiency(80), limits(workers=1), None)
    assert found.mini_batch.value == 64
    assert "MiniBatchDoesNotFit" in reasons(found)


def test_a_users_batch_that_did_not_fit_wins_with_a_warning():
    measured = report(point(16, 0.1, 0.0), OUT_OF_MEMORY)
    found = plan(measured, efficiency(80), limits(minibatch=32), None)
    assert (found.mini_batch.value, found.mini_batch.recommended) == (32, 16)
    assert {"MiniBatchDoesNotFit", "BeyondMeasuredRange"} <= set(reasons(found))
