"""Overlap with compute, and other topologies than parameter servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from muster.sizing import overlap, topology
from muster.sizing.servers import Links, Traffic


@pytest.mark.parametrize(
    ("exchange", "iteration"), [([1, 1, 1], 10), ([1, 1, 5], 12), ([5, 1, 1], 14), ([3, 3, 3], 14), ([0, 0, 0], 9)]
)
def test_layers_exchange_one_after_another_each_once_its_gradient_is_there(exchange, iteration):
    assert overlap.layerwise_iteration([1, 1, 1], [2, 2, 2], exchange) == iteration


times = st.lists(st.tuples(*[st.floats(0, 10)] * 3), min_size=1, max_size=8)


@given(times)
def test_an_iteration_lasts_at_least_compute_and_at_most_compute_and_exchange(layers):
    forward, backward, exchange = zip(*layers, strict=True)
    compute = sum(forward) + sum(backward)
    found = overlap.layerwise_iteration(forward, backward, exchange)
    assert compute * (1 - 1e-9) <= found <= (compute + sum(exchange)) * (1 + 1e-9)


def test_layers_must_be_complete():
    with pytest.raises(ValueError, match="as many"):
        overlap.layerwise_iteration([1], [1, 2], [1])


def test_where_nothing_hides_efficiency_is_the_share_of_compute():
    assert overlap.unhidden_efficiency(3, 1) == 0.75


@pytest.mark.parametrize(("servers", "moved"), [(1, 7.0), (4, 2.5), (8, 1.75)])
def test_servers_on_the_workers_nodes(servers, moved):
    assert topology.colocated_bytes(1, 8, servers) == pytest.approx(moved)


@pytest.mark.parametrize(("servers", "moved"), [(0, 1.75), (4, 1.2727), (8, 1.0)])
def test_the_best_split_over_gpu_nodes_and_cpu_servers(servers, moved):
    assert topology.split_bytes(1, 8, servers) == pytest.approx(moved, abs=1e-4)


def test_a_ring_moves_as_much_as_a_server_on_every_node():
    assert topology.ring_bytes(1, 8) == topology.colocated_bytes(1, 8, 8) == 1.75
    assert topology.ring_seconds(Traffic(8, 8), Links.equal(1, 2), 8) == 7
    assert topology.ring_seconds(Traffic(8, 8), Links.equal(1, 2), 1) == 0


@pytest.mark.parametrize(("rule", "servers"), [(topology.colocated_bytes, 0), (topology.split_bytes, 9)])
def test_more_servers_than_nodes_are_an_error(rule, servers):
    with pytest.raises(ValueError, match="as many as there are nodes"):
        rule(1, 8, servers)
