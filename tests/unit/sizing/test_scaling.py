"""Lemma 1: efficiency, speed-up and their inverses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from muster.sizing import scaling

ratios = st.floats(1e-4, 2)


@pytest.mark.parametrize(
    ("ratio", "gpus", "alpha"),
    [
        (0.05, 2, 0.954545),
        (0.05, 4, 0.875),
        (0.05, 8, 0.75),
        (0.05, 16, 0.583333),
        (0.05, 64, 0.25),
        (1 / 11, 4, 0.8),
        (0.1, 8, 0.611111),
        (0, 64, 1),
    ],
)
def test_efficiency(ratio, gpus, alpha):
    assert scaling.efficiency(gpus, ratio) == pytest.approx(alpha, abs=1e-6)
    assert scaling.speedup(gpus, ratio) == pytest.approx(alpha * gpus, abs=1e-4)
    assert scaling.relative_cost(gpus, ratio) == pytest.approx(1 / alpha, rel=1e-5)


@pytest.mark.parametrize(
    ("alpha", "gpus", "ratio"),
    [
        (0.8, 2, 1 / 3),
        (0.8, 4, 0.090909),
        (0.8, 8, 0.037037),
        (0.8, 16, 0.016949),
        (0.8, 32, 0.008130),
        (0.8, 64, 0.003984),
        (0.9, 4, 0.038462),
        (0.5, 2, math.inf),
    ],
)
def test_the_largest_ratio_that_keeps_an_efficiency(alpha, gpus, ratio):
    assert scaling.largest_ratio(alpha, gpus) == pytest.approx(ratio, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "ratio", "gpus"),
    [
        (0.5, 0.05, 22),
        (0.8, 1 / 11, 4),
        (0.8, 0.05, 6),
        (0.8, 0.1, 3),
        (0.9, 0.1, 2),
        (0.8, 0.01, 26),
        (1, 0.05, 1),
        (0.8, 0, None),
        (1, 0, None),
    ],
)
def test_the_most_gpus_that_keep_an_efficiency(alpha, ratio, gpus):
    assert scaling.largest_gpus(alpha, ratio) == gpus


@pytest.mark.parametrize("alpha", [0, -0.1, 1.0001, 80])
def test_an_efficiency_outside_its_range_is_an_error(alpha):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        scaling.largest_gpus(alpha, 0.1)


@pytest.mark.parametrize(
    ("target", "ratio", "gpus"),
    [(4, 0.2, 10), (11, 0.05, 22), (2, 0.1, 3), (8, 0.1, 27), (8, 0.05, 13), (8, 0.2, None), (6, 0.2, None), (1, 3, 1)],
)
def test_the_fewest_gpus_that_reach_a_speedup(target, ratio, gpus):
    assert scaling.fewest_gpus(target, ratio) == gpus


def test_the_knee_is_where_half_of_an_iteration_is_overhead():
    assert scaling.knee(0.05) == pytest.approx(20)
    assert scaling.efficiency(20, 0.05) == pytest.approx((1 + 0.05) / 2)
    assert scaling.knee(0) == math.inf
    assert scaling.largest_speedup(0.05) == pytest.approx(21)


@given(ratios, st.integers(2, 512))
def test_a_measured_speedup_gives_its_ratio_back(ratio, gpus):
    found = scaling.ratio_of_speedup(scaling.speedup(gpus, ratio), gpus)
    assert found.value == pytest.approx(ratio, rel=1e-6, abs=1e-9)


@given(ratios, st.lists(st.integers(2, 512), min_size=1, max_size=6))
def test_several_points_of_one_ratio_give_it_back(ratio, gpus):
    found = scaling.fit_ratio([(g, scaling.speedup(g, ratio)) for g in gpus])
    assert found.value == pytest.approx(ratio, rel=1e-6)
    assert found.low <= found.value <= found.high


def test_degenerate_measurements_say_so():
    with pytest.raises(ValueError, match="no overhead ratio explains"):
        scaling.ratio_of_speedup(0.9, 4)
    with pytest.raises(ValueError, match="no overhead ratio explains"):
        scaling.fit_ratio([(4, 0.9)])
    with pytest.raises(ValueError, match="2 or more"):
        scaling.ratio_of_speedup(1.5, 1)
    superlinear = scaling.ratio_of_speedup(4.2, 4)
    assert (superlinear.value, superlinear.superlinear) == (0, True)
    assert scaling.fit_ratio([(2, 2.1), (4, 4.4)]).superlinear


@given(st.floats(0.01, 1), ratios)
def test_the_most_gpus_keep_the_efficiency_and_one_more_does_not(alpha, ratio):
    gpus = scaling.largest_gpus(alpha, ratio)
    assert scaling.efficiency(gpus, ratio) >= alpha * (1 - 1e-8)
    assert scaling.efficiency(gpus + 1, ratio) < alpha


@given(st.floats(1.01, 100), ratios)
def test_the_fewest_gpus_reach_the_speedup_and_one_fewer_does_not(target, ratio):
    gpus = scaling.fewest_gpus(target, ratio)
    if gpus is None:
        assert target >= scaling.largest_speedup(ratio) * (1 - 1e-6)
    else:
        assert scaling.speedup(gpus, ratio) >= target * (1 - 1e-6)
        assert gpus == 1 or scaling.speedup(gpus - 1, ratio) < target


@given(ratios, st.integers(1, 512))
def test_an_exact_fit_does_not_move_by_one(ratio, gpus):
    assert scaling.largest_gpus(scaling.efficiency(gpus, ratio), ratio) == gpus
    if gpus > 1 and scaling.speedup(gpus, ratio) < scaling.largest_speedup(ratio) * 0.99:
        assert scaling.fewest_gpus(scaling.speedup(gpus, ratio), ratio) == gpus


# ResNet-50 on T4 GPUs at a global batch of 160, seconds a step by (GPUs, nodes): AdaptDL's measurements (Apache-2.0),
# branch osdi21-artifact, interpolated linearly between the measured batch sizes.
T4_RESNET50 = {(1, 1): 0.74978, (2, 1): 0.42236, (4, 1): 0.26102, (4, 2): 0.43656}


@pytest.mark.parametrize(("gpus", "nodes", "ratio"), [(2, 1, 0.145), (4, 1, 0.1505), (4, 2, 0.795)])
def test_measured_ratios_inside_a_node_agree_and_across_nodes_jump(gpus, nodes, ratio):
    measured = T4_RESNET50[1, 1] / T4_RESNET50[gpus, nodes]
    assert scaling.ratio_of_speedup(measured, gpus).value == pytest.approx(ratio, abs=5e-4)


def test_each_placement_has_its_own_ratio():
    points = [(gpus, nodes, T4_RESNET50[1, 1] / seconds) for (gpus, nodes), seconds in T4_RESNET50.items()]
    found = scaling.fit_by_placement(points)
    assert found[False].value == pytest.approx(0.149, abs=2e-3)
    assert found[True].value == pytest.approx(0.795, abs=2e-3)


def test_an_interval_of_the_ratio_becomes_an_interval_of_gpus():
    assert scaling.Ratio(0.05, 0.04, 0.06).largest_gpus(0.8) == (5, 7)


def test_weak_scaling_with_constant_overhead_is_flat():
    assert scaling.weak_efficiency(1, 0.1, 0.1) == 1
    assert scaling.weak_efficiency(1, 0.1, 0.32) == pytest.approx(1.1 / 1.32)


# ResNet-50, K80, synthetic data, batch 64 a GPU: TensorFlow's published benchmarks of May 2017 (images/s by GPUs).
K80_RESNET50 = {1: 51.9, 2: 99.0, 4: 195.0, 8: 387.0}


def test_the_form_that_fits_the_measured_points_is_kept():
    strong = scaling.fit_form([(g, scaling.speedup(g, 0.15)) for g in (2, 4, 8)])
    assert strong.strong
    assert strong.ratio.value == pytest.approx(0.15)
    weak = scaling.fit_form([(g, rate / K80_RESNET50[1]) for g, rate in K80_RESNET50.items() if g > 1])
    assert not weak.strong
    assert weak.weak_error < 0.02 < weak.strong_error


def test_a_ratio_fitted_at_2_gpus_is_too_low_a_guess_for_weak_scaling():
    ratio = scaling.ratio_of_speedup(K80_RESNET50[2] / K80_RESNET50[1], 2)
    assert scaling.speedup(8, ratio.value) == pytest.approx(5.90, abs=0.15)
    assert K80_RESNET50[8] / K80_RESNET50[1] == pytest.approx(7.46, abs=0.01)
