"""Lemma 2: servers, with asymmetric links, the workers' own link, real tensors, latency and memory."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from muster.sizing import placement, servers
from muster.sizing.placement import Shards
from muster.sizing.servers import Links, Traffic

GBIT = 1.25e8
ALEXNET, VGG16, RESNET50 = 243_860_896, 553_430_176, 102_228_128
TEN = Links.equal(10 * GBIT, 10 * GBIT)
DUPLEX = Links.equal(10 * GBIT, 10 * GBIT, duplex=True)
UNEVEN = Links(server_in=10 * GBIT, server_out=5 * GBIT, worker_in=10 * GBIT, worker_out=5 * GBIT)
EVEN = Shards((), placement.even)


@pytest.mark.parametrize(
    ("parameters", "workers", "links", "compute", "needed", "count"),
    [
        (ALEXNET, 8, TEN, 0.5, 6.2428, 7),
        (ALEXNET, 8, DUPLEX, 0.5, 3.1214, 4),
        (ALEXNET, 8, UNEVEN, 0.5, 9.3643, None),
        (ALEXNET, 8, TEN, 1.0, 3.1214, 4),
        (ALEXNET, 8, TEN, 0.25, 12.4857, None),
        (VGG16, 4, TEN, 0.5, 7.0839, None),
        (RESNET50, 8, TEN, 0.5, 2.6170, 3),
        (RESNET50, 8, Links.equal(25 * GBIT, 25 * GBIT), 0.5, 1.0468, 2),
        (ALEXNET, 1, TEN, 0.5, 0.7804, 0),
    ],
)
def test_the_fewest_servers_that_hide_the_exchange(parameters, workers, links, compute, needed, count):
    traffic = Traffic(parameters, parameters)
    assert servers.lemma(traffic, links, workers, compute) == pytest.approx(needed, abs=1e-4)
    assert servers.fewest(traffic, links, workers, compute) == count


@pytest.mark.scenario("A2")
@pytest.mark.parametrize(("excess", "count"), [(0, 3), (1e-7 / 3, 4), (-1e-7, 3)])
def test_an_exact_fit_is_one_server_fewer_than_a_hair_more(excess, count):
    traffic = Traffic(3e8 * (1 + excess), 3e8 * (1 + excess))
    links = Links.equal(2e8 * 4, 1e12)
    assert servers.fewest(traffic, links, 4, 1.0) == count
    assert servers.choose(traffic, links, EVEN, 4, 1.0, 64).count == count


def test_where_the_workers_links_bind_servers_only_keep_up_with_them():
    choice = servers.choose(Traffic(ALEXNET, ALEXNET), TEN, EVEN, 8, 0.25, 64)
    assert (choice.count, choice.bound) == (8, "WorkerLink")


def test_latency_comes_off_the_window_first():
    traffic = Traffic(RESNET50, RESNET50, messages=161, latency=1e-3)
    assert servers.lemma(traffic, TEN, 8, 0.5) == pytest.approx(2.6170 * 0.5 / (0.5 - 0.161), rel=1e-4)
    assert servers.lemma(traffic, TEN, 8, 0.161) == math.inf
    assert servers.choose(traffic, TEN, EVEN, 8, 0.1, 64).bound == "Latency"
    assert servers.fewest(traffic, TEN, 8, 0.1) is None


def test_a_servers_memory_adds_to_its_time():
    slow = Links(10 * GBIT, 10 * GBIT, 10 * GBIT, 10 * GBIT, server_memory=3 * 10 * GBIT)
    assert servers.lemma(Traffic(RESNET50, RESNET50), slow, 8, 0.5) == pytest.approx(2.6170 * 1.5, rel=1e-4)


def test_gpus_without_local_aggregation_count_as_workers():
    assert servers.nics(4, 8, local_aggregation=True) == 4
    assert servers.nics(4, 8, local_aggregation=False) == 32


def test_without_overlap_nothing_hides_and_servers_keep_up_with_the_workers():
    choice = servers.choose(Traffic(RESNET50, RESNET50), TEN, EVEN, 8, 0.0, 64)
    assert (choice.count, choice.bound) == (8, "NoOverlap")


def test_one_tensor_that_dominates_caps_the_servers():
    shards = Shards((9_000_000, 250_000, 250_000, 250_000, 250_000), placement.round_robin)
    choice = servers.choose(Traffic(4e7, 4e7), Links.equal(GBIT, 10 * GBIT), shards, 4, 0.9, 64)
    assert choice.bound == "Placement"
    assert choice.count == 5
    assert servers.choose(Traffic(4e7, 4e7), Links.equal(GBIT, 10 * GBIT), EVEN, 4, 0.9, 64).count == 3


def test_the_scan_takes_the_first_count_whose_fullest_server_is_fast_enough():
    # N * phi(N) is not monotone: two equal tensors fill 2 servers evenly, on 3 the third is idle.
    shards = Shards((10, 10, 1, 1), placement.round_robin)
    assert [round(shards.fullest(n) * n, 3) for n in (1, 2, 3, 4)] == [1.0, 1.0, 1.5, 1.818]
    assert servers.choose(Traffic(2, 2), Links.equal(4, 100), shards, 2, 1.0, 8).count == 2


amounts = st.floats(1e6, 1e9)
seconds = st.floats(0.01, 2)
counts = st.integers(2, 32)
shapes = st.lists(st.integers(1, 10**7), max_size=8)
ways = st.sampled_from([placement.even, placement.round_robin, placement.largest_first, placement.big_arrays_split])


@pytest.mark.scenario("A2")
@given(amounts, amounts, counts, seconds, shapes, ways, st.floats(1, 4))
def test_counts_never_fall_when_bytes_grow_or_bandwidth_falls(size, speed, workers, window, tensors, place, factor):
    shards = Shards(tensors, place)

    def count(size, speed):
        return servers.choose(Traffic(size, size), Links.equal(speed, 1e9), shards, workers, window, 16).count

    assert count(size * factor, speed) >= count(size, speed)
    assert count(size, speed / factor) >= count(size, speed)


@given(amounts, amounts, counts, seconds, shapes, ways)
def test_the_count_hides_the_exchange_and_one_fewer_does_not(size, speed, workers, window, tensors, place):
    shards, traffic, links = Shards(tensors, place), Traffic(size, size), Links.equal(speed, 1e9)
    choice = servers.choose(traffic, links, shards, workers, window, 16)

    def exposed(count):
        return max(0.0, servers.exchange_seconds(traffic, links, shards, workers, count) - window * (1 + 1e-8))

    if choice.bound == "Bandwidth":
        assert exposed(choice.count) == 0
        assert all(exposed(count) > 0 for count in range(1, choice.count))
    else:
        assert exposed(choice.count) > 0
    assert exposed(choice.count) <= min(exposed(count) for count in range(1, 17)) * (1 + 1e-6)
