"""How each framework lays tensors on servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from muster.api.job import Framework
from muster.sizing import placement
from muster.sizing.placement import Shards

RULES = [*placement.PLACEMENTS.values(), placement.greedy, placement.largest_first, placement.fixed_partitions]


@pytest.mark.parametrize(
    ("rule", "sizes", "servers", "loads"),
    [
        (placement.even, (5, 4, 1), 4, [3, 3, 2, 2]),
        (placement.round_robin, (5, 4, 1, 7), 2, [6, 11]),
        (placement.greedy, (5, 4, 1, 7), 2, [12, 5]),
        (placement.largest_first, (1, 4, 5, 7), 2, [8, 9]),
        (placement.big_arrays_split, (1_000_000, 999_999), 2, [500_000, 1_499_999]),
        (placement.big_arrays_split, (4, 6), 2, [4, 6]),
        (placement.fixed_partitions, (5, 4), 2, [5, 4]),
        (placement.min_max_partitions, (200_000, 10), 2, [100_010, 100_000]),
        (placement.blocks, (20_000, 100), 2, [10_100, 10_000]),
    ],
)
def test_each_rule(rule, sizes, servers, loads):
    assert rule(sizes, servers) == loads


def test_a_partition_larger_than_the_tensor_keeps_it_whole():
    assert placement.partitioned((10, 25), 2, slice_size=10) == [18, 17]


@pytest.mark.parametrize("framework", list(Framework))
def test_every_framework_has_its_rule(framework):
    assert framework in placement.PLACEMENTS


@given(
    st.sampled_from(RULES),
    st.lists(st.integers(0, 10**7), min_size=1, max_size=12).filter(any),
    st.integers(1, 16),
)
def test_no_rule_loses_or_adds_a_parameter(rule, sizes, servers):
    loads = rule(sizes, servers)
    assert len(loads) == servers
    assert sum(loads) == sum(sizes)
    assert max(loads) / sum(sizes) >= 1 / servers - 1e-12


def test_whole_tensors_are_never_spread_thinner_than_the_largest():
    vgg16_fc6 = Shards((102_760_448, 35_597_096), placement.round_robin)
    assert vgg16_fc6.largest_share == pytest.approx(0.7427, abs=1e-4)
    assert min(vgg16_fc6.fullest(n) for n in range(1, 65)) >= vgg16_fc6.largest_share


def test_without_tensors_the_placement_is_even():
    assert Shards((), placement.round_robin).fullest(4) == 0.25
