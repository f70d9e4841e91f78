"""Which algorithm each convolution runs: the fastest set whose workspaces fit (Zou et al. 2017, arXiv 1709.06622).

    min  sum_k sum_l x_kl T_kl    s.t.  sum_k sum_l x_kl M_kl <= M_bound,  sum_l x_kl = 1 for each k,  x in {0, 1}

A row k is one pass (forward, input gradient or weight gradient) of one layer. With separate workspaces this is a
multiple-choice knapsack: greedy on each row's convex hull gives a set and, by its relaxation, a bound on what any set
can save; only where the two are further apart than the gap does HiGHS solve the 0/1 programme. With one shared
workspace the constraint is the largest, not the sum, and every row chooses alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

GAP = 1e-3
"""Relative distance to the optimum at which a solution is good enough: measured times differ by more."""
TIME_LIMIT_SECONDS = 5.0
TOLERANCE = 1e-6
"""HiGHS accepts a constraint violated by this much."""


@dataclass(frozen=True)
class Row:
    """One pass of `layers` equal layers: seconds and bytes of each algorithm, for one layer."""

    times: tuple[float, ...]
    workspaces: tuple[int, ...]
    layers: int = 1


@dataclass(frozen=True)
class Selection:
    """An algorithm for each row. `seconds` in all; `workspace` in bytes as the mode counts it (sum or largest).

    `gap`: at most this share of `seconds` could be saved by any other set. `method`: Independent (each row chose
    alone), Greedy (within the gap), Exact (HiGHS), GreedyFallback (HiGHS found nothing in time), or Given.
    """

    algorithms: tuple[int, ...]
    seconds: float
    workspace: int
    method: str
    gap: float = 0.0


@dataclass(frozen=True)
class _Option:
    """An algorithm for all layers of a row; `limit` is one layer's workspace, `workspace` what the mode counts."""

    algorithm: int
    seconds: float
    limit: int
    workspace: int


def select(rows: Sequence[Row], cap: float, *, shared: bool, gap: float = GAP) -> Selection | None:
    """The fastest algorithms within `cap` bytes of workspace; None where not even the leanest set fits."""
    if shared:
        return _independent(_undominated(rows, shared=True), cap, shared=True)
    found = greedy(rows, cap)
    return found if found is None or found.gap <= gap else exact(rows, cap, gap=gap)


def least_workspace(rows: Sequence[Row], *, shared: bool) -> Selection:
    """The leanest set, the faster of equally lean algorithms: what every set is measured against."""
    return _selection([row[0] for row in _undominated(rows, shared=shared)], "Independent", shared=shared)


def totals(rows: Sequence[Row], algorithms: Sequence[int], *, shared: bool) -> Selection:
    """Seconds and workspace of any set, for example the one that a measured run used."""
    chosen = [_option(row, i, shared=shared) for row, i in zip(rows, algorithms, strict=True)]
    return _selection(chosen, "Given", shared=shared)


def _independent(options: Sequence[Sequence[_Option]], limit: float, *, shared: bool) -> Selection | None:
    chosen = []
    for row in options:
        fitting = [option for option in row if option.limit <= limit]
        if not fitting:
            return None
        chosen.append(fitting[-1])
    return _selection(chosen, "Independent", shared=shared)


def greedy(rows: Sequence[Row], cap: float) -> Selection | None:
    """Separate workspaces: upgrades in the order of seconds saved a byte, as long as they fit, with the proven gap."""
    hulls = [_hull(options) for options in _undominated(rows, shared=False)]
    chosen = [hull[0] for hull in hulls]
    left = cap - sum(option.workspace for option in chosen)
    if left < 0:
        return None
    bound: float | None = None
    stopped: set[int] = set()
    for k, better in _upgrades(hulls):
        saved, extra = chosen[k].seconds - better.seconds, better.workspace - chosen[k].workspace
        if k in stopped:
            continue
        if extra <= left:
            chosen[k], left = better, left - extra
            continue
        stopped.add(k)
        if bound is None:  # the relaxation takes a fraction of the first upgrade that does not fit, then nothing more
            bound = sum(option.seconds for option in chosen) - saved * left / extra
    found = _selection(chosen, "Greedy", shared=False)
    if bound is None or found.seconds == 0:
        return found
    return _selection(chosen, "Greedy", shared=False, gap=max(0.0, 1 - bound / found.seconds))


def exact(rows: Sequence[Row], cap: float, *, gap: float = GAP) -> Selection | None:
    """Separate workspaces: the 0/1 programme by HiGHS; greedy where it runs out of time, which `method` tells."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    fallback = greedy(rows, cap)
    if fallback is None or cap == 0:
        return fallback
    options = _undominated(rows, shared=False)
    flat = [option for row in options for option in row]
    owner = [k for k, row in enumerate(options) for _ in row]
    unit = max(option.seconds for option in flat) or 1.0
    one_each = csr_array(([1.0] * len(flat), (owner, range(len(flat)))), shape=(len(rows), len(flat)))
    for bound in (1.0, 1 - 2 * TOLERANCE):
        result = milp(
            [option.seconds / unit for option in flat],
            integrality=[1] * len(flat),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint([[option.workspace / cap for option in flat]], ub=bound),
                LinearConstraint(one_each, lb=1, ub=1),
            ],
            options={"mip_rel_gap": gap, "time_limit": TIME_LIMIT_SECONDS},
        )
        if result.x is None:
            break
        chosen = [option for option, taken in zip(flat, result.x, strict=True) if taken > 0.5]
        # A set over the cap by less than the solver's tolerance would not fit: once more, that much below.
        if sum(option.workspace for option in chosen) <= cap:
            reached = max(gap, result.mip_gap) if result.status else gap
            return _selection(chosen, "Exact", shared=False, gap=reached)
    return replace(fallback, method="GreedyFallback")


def front(rows: Sequence[Row], *, shared: bool, most: int = 16) -> list[tuple[int, float]]:
    """(workspace bytes, seconds) of the sets that no other beats in both, leanest first, `most` of them at the most.

    With separate workspaces only those on the convex hull.
    """
    options = _undominated(rows, shared=shared)
    if shared:
        points = [(limit, total) for limit, _, total in _by_limit(options)]
    else:
        hulls = [_hull(row) for row in options]
        chosen = [hull[0] for hull in hulls]
        total, used = sum(o.seconds for o in chosen), sum(o.workspace for o in chosen)
        points = [(used, total)]
        for k, better in _upgrades(hulls):
            used += better.workspace - chosen[k].workspace
            total += better.seconds - chosen[k].seconds
            chosen[k] = better
            points.append((used, total))
    if len(points) <= most:
        return points
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def one_limit(rows: Sequence[Row], cap: float, *, shared: bool) -> tuple[int, Selection] | None:
    """The best that a single limit a workspace, for the whole process, can reach, and that limit in bytes.

    Libraries take no list of algorithms, only a limit: each convolution then runs its fastest algorithm within it. The
    total workspace does not grow steadily with the limit, so every limit is tried.
    """
    options = _undominated(rows, shared=shared)
    fitting = [(total, limit) for limit, used, total in _by_limit(options) if (limit if shared else used) <= cap]
    if not fitting:
        return None
    _, limit = min(fitting)
    selection = _independent(options, limit, shared=shared)
    assert selection is not None  # a limit that is listed leaves every row an algorithm
    return limit, selection


def _by_limit(options: Sequence[Sequence[_Option]]) -> Iterator[tuple[int, int, float]]:
    """(limit, counted workspace in all, seconds in all) of every limit that leaves each row an algorithm."""
    steps = sorted(((option.limit, k, option) for k, row in enumerate(options) for option in row), key=lambda s: s[:2])
    chosen: dict[int, _Option] = {}
    used, total = 0, 0.0
    for i, (limit, k, option) in enumerate(steps):
        before = chosen.get(k)
        chosen[k] = option
        used += option.workspace - (before.workspace if before else 0)
        total += option.seconds - (before.seconds if before else 0.0)
        if len(chosen) == len(options) and (i + 1 == len(steps) or steps[i + 1][0] > limit):
            yield limit, used, total


def _option(row: Row, algorithm: int, *, shared: bool) -> _Option:
    limit = row.workspaces[algorithm]
    counted = limit if shared else limit * row.layers
    return _Option(algorithm, row.times[algorithm] * row.layers, limit, counted)


def _undominated(rows: Sequence[Row], *, shared: bool) -> list[list[_Option]]:
    """Each row's algorithms that no other beats in both time and workspace, leanest first."""
    return [_undominated_of(row, shared=shared) for row in rows]


def _undominated_of(row: Row, *, shared: bool) -> list[_Option]:
    order = sorted(range(len(row.times)), key=lambda i: (row.workspaces[i], row.times[i], i))
    kept: list[_Option] = []
    for i in order:
        option = _option(row, i, shared=shared)
        if not kept or option.seconds < kept[-1].seconds:
            kept.append(option)
    return kept


def _hull(options: Sequence[_Option]) -> list[_Option]:
    """The lower convex hull: along it each further byte saves no more than the one before."""
    hull: list[_Option] = []
    for option in options:
        while len(hull) > 1 and _rate(hull[-2], hull[-1]) <= _rate(hull[-2], option):
            hull.pop()
        hull.append(option)
    return hull


def _rate(lean: _Option, fast: _Option) -> float:
    return (lean.seconds - fast.seconds) / (fast.workspace - lean.workspace)


def _upgrades(hulls: Sequence[Sequence[_Option]]) -> Iterator[tuple[int, _Option]]:
    """Every step along every hull, those that save most a byte first; the steps of one row in their order."""
    steps = [(-_rate(lean, fast), k, fast) for k, hull in enumerate(hulls) for lean, fast in pairwise(hull)]
    return ((k, fast) for _, k, fast in sorted(steps, key=lambda step: (step[0], step[1], step[2].workspace)))


def _selection(chosen: Sequence[_Option], method: str, *, shared: bool, gap: float = 0.0) -> Selection:
    sizes = [option.workspace for option in chosen]
    return Selection(
        algorithms=tuple(option.algorithm for option in chosen),
        seconds=sum(option.seconds for option in chosen),
        workspace=(max(sizes, default=0) if shared else sum(sizes)),
        method=method,
        gap=gap,
    )
