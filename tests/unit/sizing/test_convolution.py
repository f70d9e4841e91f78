"""The choice of convolution algorithms: exact, greedy, by one limit, and what workspace buys."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from muster.sizing import convolution
from muster.sizing.convolution import Row

TIMES = [[10, 6, 4], [8, 5, 5], [12, 7, 3]]
WORKSPACES = [[0, 20, 60], [0, 10, 40], [0, 30, 50]]
ROWS = [Row(tuple(times), tuple(sizes)) for times, sizes in zip(TIMES, WORKSPACES, strict=True)]


@pytest.mark.parametrize(
    ("cap", "seconds", "algorithms"),
    [
        (0, 30, (0, 0, 0)),
        (10, 27, (0, 1, 0)),
        (30, 23, (1, 1, 0)),
        (40, 22, (0, 1, 1)),
        (60, 18, (0, 1, 2)),
        (80, 14, (1, 1, 2)),
        (110, 14, (1, 1, 2)),
        (140, 12, (2, 1, 2)),
    ],
)
def test_separate_workspaces(cap, seconds, algorithms):
    found = convolution.select(ROWS, cap, shared=False)
    assert (found.seconds, found.algorithms) == (pytest.approx(seconds), algorithms)
    assert convolution.exact(ROWS, cap, gap=0).seconds == pytest.approx(seconds)


def test_a_negative_cap_is_infeasible():
    assert convolution.select(ROWS, -1, shared=False) is None
    assert convolution.exact(ROWS, -1) is None
    assert convolution.one_limit([Row((1.0,), (5,))], 4, shared=True) is None


@pytest.mark.parametrize(("cap", "seconds"), [(0, 30), (10, 27), (20, 23), (30, 18), (50, 14), (60, 12)])
def test_a_shared_workspace_lets_every_layer_choose_alone(cap, seconds):
    assert convolution.select(ROWS, cap, shared=True).seconds == seconds


tables = st.lists(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 40)), min_size=1, max_size=4), min_size=1, max_size=4
)


def _rows(table):
    return [Row(tuple(t for t, _ in row), tuple(m for _, m in row)) for row in table]


def _brute_force(rows, fits):
    sets = product(*(range(len(row.times)) for row in rows))
    fitting = [s for s in sets if fits([row.workspaces[i] for row, i in zip(rows, s, strict=True)])]
    return min((sum(row.times[i] for row, i in zip(rows, s, strict=True)) for s in fitting), default=None)


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(-1, 120))
def test_the_programme_equals_brute_force(table, cap):
    rows = _rows(table)
    best = _brute_force(rows, lambda sizes: sum(sizes) <= cap)
    found = convolution.select(rows, cap, shared=False, gap=0)
    assert (found and found.seconds) == best
    assert found is None or found.workspace <= cap
    shared = convolution.select(rows, cap, shared=True)
    assert (shared and shared.seconds) == _brute_force(rows, lambda sizes: max(sizes) <= cap)


@given(tables, st.integers(0, 120))
def test_greedy_knows_how_far_it_may_be_off(table, cap):
    rows = _rows(table)
    best, found = _brute_force(rows, lambda sizes: sum(sizes) <= cap), convolution.greedy(rows, cap)
    if found is None:
        assert best is None
    else:
        assert found.workspace <= cap
        assert found.seconds * (1 - found.gap) <= best * (1 + 1e-9) <= found.seconds * (1 + 1e-9)


@given(tables, st.integers(0, 120))
def test_one_limit_is_the_best_of_all_limits(table, cap):
    rows = _rows(table)

    def within(limit):
        picks = [[i for i, m in enumerate(row.workspaces) if m <= limit] for row in rows]
        if not all(picks):
            return None
        best = [
            min(pick, key=lambda i: (row.times[i], row.workspaces[i])) for row, pick in zip(rows, picks, strict=True)
        ]
        used = sum(row.workspaces[i] for row, i in zip(rows, best, strict=True))
        return sum(row.times[i] for row, i in zip(rows, best, strict=True)) if used <= cap else None

    limits = {m for row in rows for m in row.workspaces}
    expected = min((seconds for limit in limits if (seconds := within(limit)) is not None), default=None)
    found = convolution.one_limit(rows, cap, shared=False)
    assert (found and found[1].seconds) == expected


def test_layers_of_one_shape_choose_together():
    rows = [Row((3.0, 1.0), (0, 10), layers=4)]
    assert convolution.select(rows, 39, shared=False).seconds == 12
    assert convolution.select(rows, 40, shared=False).seconds == 4
    assert convolution.select(rows, 10, shared=True).seconds == 4


def test_the_front_falls_in_time_as_workspace_grows():
    assert convolution.front(ROWS, shared=False) == [(0, 30), (10, 27), (30, 23), (80, 14), (120, 12)]
    assert convolution.front(ROWS, shared=True)[-1] == (60, 12)
    many = [Row(tuple(1 / (1 + i) for i in range(30)), tuple(range(30)))] * 3
    thinned = convolution.front(many, shared=False)
    assert len(thinned) == 16
    assert [point[1] for point in thinned] == sorted((point[1] for point in thinned), reverse=True)


def test_when_the_solver_finds_nothing_in_time_greedy_answers_and_says_so(monkeypatch):
    monkeypatch.setattr(convolution, "TIME_LIMIT_SECONDS", 0.0)
    found = convolution.exact(ROWS, 60)
    assert found.method == "GreedyFallback"
    assert found.workspace <= 60
    assert found.seconds * (1 - found.gap) <= 18 <= found.seconds
