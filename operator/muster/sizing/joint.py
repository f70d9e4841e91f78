"""The joint choice: for every mini-batch that fits, every number of workers within the bounds, with the best servers.

Exhaustive over mini-batches and workers. Over servers it need not be: what a number of servers leaves exposed depends
only on the fullest server's share, and `servers.choose` returns the fewest servers with the least exposed time. So a
number of workers meets the goal with some number of servers if and only if it does with these.

Among what meets the goal, the order is: the mini-batch with the best throughput of one GPU (those within TIE of it
count as equal: measurements cannot tell them apart), then what the goal wants of GPUs, then fewer servers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.sizing.bounds import Cap
from muster.sizing.goals import Target
from muster.sizing.iteration import Model, State
from muster.sizing.rounding import EPSILON

TIE = 0.01
"""Relative difference of throughput below which two mini-batches are equally fast."""


@dataclass(frozen=True)
class Solution:
    """A mini-batch's model, its best state, and the bound on workers that it was searched within."""

    model: Model
    state: State
    cap: Cap


def solve(models: Sequence[tuple[Model, Cap]], target: Target) -> Solution | None:
    """The best plan of all, or None where no mini-batch meets the goal at any size."""
    found = []
    for model, cap in models:
        state = best_state(model, cap.workers, target)
        if state is not None:
            found.append(Solution(model, state, cap))
    if not found:
        return None
    fastest = max(one.model.candidate.samples_per_second for one in found)
    equals = [one for one in found if one.model.candidate.samples_per_second >= (1 - TIE) * fastest]
    return min(equals, key=lambda one: _order(one, target))


def _order(one: Solution, target: Target) -> tuple[float, ...]:
    wanted = -one.state.samples_per_second if target.wants_most else one.state.gpus
    candidate = one.model.candidate
    return wanted, one.state.servers, -candidate.samples_per_second, candidate.minibatch


def best_state(model: Model, most_workers: int, target: Target) -> State | None:
    """The size that the goal wants for one mini-batch."""
    return best_of(model.up_to(most_workers), target)


def best_of(states: Iterable[State], target: Target) -> State | None:
    """The one that the goal wants, of states in rising order of their workers.

    Goals that want many GPUs get as many as still add throughput: none is added that only waits.
    """
    chosen: State | None = None
    for state in states:
        if not target.met(state):
            continue
        if not target.wants_most:
            return state
        if chosen is None or state.samples_per_second > chosen.samples_per_second * (1 + EPSILON):
            chosen = state
    return chosen


def nearest_state(model: Model, most_workers: int, target: Target) -> State:
    """Where no size meets the goal: the one that comes nearest."""
    return max(model.up_to(most_workers), key=target.closeness)
