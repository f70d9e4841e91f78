"""Through which stages a trial leads its script: warming up, blocks as it is and frozen in turn, memory, on a GPU
batches that lie on it already, and the estimate. A stage is (mode, iterations, how many of them to drop first).
"""

from __future__ import annotations

import statistics
from typing import Any, Iterator, Protocol

from muster_profiler.estimate import EACH
from muster_profiler.frameworks import Framework
from muster_profiler.repeats import Repeats
from muster_profiler.schedule import FIRST
from muster_profiler.trial import CONVOLUTIONS, ESTIMATE, FROZEN, MEMORY, NATURAL, RESIDENT, WARM, Settings

WINDOW = 6
"""Iterations whose median is compared."""
MOST_DROPPED = 16


class Seen(Protocol):
    """What the stages depend on: what the agent has seen so far."""

    framework: Framework
    settings: Settings
    repeats: Repeats
    iterations: int

    def elapsed(self) -> float:
        """Seconds since the first iteration began."""

    def recent(self, count: int) -> list[float]:
        """Seconds of the last iterations."""

    def prefetched(self) -> int:
        """Batches that the loader may have ready."""

    def blocks(self, mode: str) -> list[list[float]]:
        """Seconds of the kept iterations of each block of a mode."""


def stages(seen: Seen) -> Iterator[tuple[str, int, int]]:
    """The stages of a trial, each decided when the one before it is over."""
    settings = seen.settings
    yield from _warm_up(seen)
    if settings.convolution_seconds:
        yield CONVOLUTIONS, 1, 0
        return
    if settings.steps:
        yield from _timed_pairs(seen, NATURAL, FROZEN, settings.steps)
    if settings.memory_steps:
        yield MEMORY, settings.memory_steps, 0
    if settings.steps and seen.framework.resident_differs() and seen.repeats:
        yield from _timed_pairs(seen, FROZEN, RESIDENT, 15)
    if settings.estimate and seen.repeats.outlines:
        yield ESTIMATE, EACH * (1 + len(settings.estimate)), 0


def within(iterations: int, prefetched: int) -> dict[str, Any]:
    """Settings whose stages up to memory's fit into a script of so few iterations, if two pairs of blocks do."""
    dropped = max(1, min(MOST_DROPPED, prefetched))
    warm = max(1, iterations // 6)
    block = max(min(3, warm), dropped)
    room = iterations - 2 * FIRST - warm - Settings.memory_steps
    pairs = max(2, room // (2 * (block + dropped)))
    return {"warmup_steps": warm, "settle": False, "block": block, "steps": pairs * block, "most_steps": 0}


def _warm_up(seen: Seen) -> Iterator[tuple[str, int, int]]:
    """Until three windows in a row agree within 5 %, or for two fifths of the time. A draining prefetch queue looks
    steady, so what can lie in it is skipped first."""
    settings = seen.settings
    least = settings.warmup_steps - seen.iterations
    if not settings.settle:
        yield WARM, max(1, least), 0
        return
    yield WARM, max(seen.prefetched() + 2, least), 0
    medians: list[float] = []
    while seen.elapsed() < 0.4 * settings.seconds:
        yield WARM, WINDOW, 0
        medians.append(statistics.median(seen.recent(WINDOW)))
        last = medians[-3:]
        enough = seen.elapsed() >= min(5.0 if seen.framework.resident_differs() else 1.0, 0.3 * settings.seconds)
        if len(last) == 3 and max(last) <= 1.05 * min(last) and enough:
            return


def _timed_pairs(seen: Seen, one: str, other: str, steps: int) -> Iterator[tuple[str, int, int]]:
    """Blocks of both kinds in turn, at least two of each, within the time. After a switch, iterations that still
    live on batches loaded ahead are dropped."""
    settings = seen.settings
    dropped = min(max(1, seen.prefetched()), MOST_DROPPED)
    block = max(settings.block, dropped)
    left = max(0.0, settings.seconds - seen.elapsed())
    affordable = int(left / (6 * max(1e-6, statistics.median(seen.recent(WINDOW)))))
    block = min(block, max(2, affordable - dropped))
    needed, most = (max(2, -(-count // block)) for count in (steps, max(steps, settings.most_steps)))
    for pair in range(most):
        late = seen.elapsed() > settings.seconds
        if (pair >= 2 and late) or (pair >= needed and _settled(seen.blocks(one)) and _settled(seen.blocks(other))):
            return
        yield one, dropped + block, dropped
        if seen.repeats:
            yield other, dropped + block, dropped


def _settled(blocks: list[list[float]]) -> bool:
    """Whether the mean of the blocks' medians is known to about 1 % (one standard error)."""
    medians = [statistics.median(block) for block in blocks]
    if len(medians) < 2:
        return True
    return bool(statistics.stdev(medians) <= 0.01 * len(medians) ** 0.5 * statistics.mean(medians))
