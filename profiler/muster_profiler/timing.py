"""From the iterations of a trial to compute and overhead time, with intervals. Times are integers in nanoseconds."""

from __future__ import annotations

import collections
import math
import random
import statistics
from typing import Any, Sequence

from muster_profiler.trial import FROZEN, NATURAL, RESIDENT, WARM

Cycle = Sequence[Any]
"""(mode, block, kept, nanoseconds, fetches), as the agent writes it."""

RESAMPLES = 400
STEADY = 1.1
"""A trial is steady if no third of its natural or frozen iterations has a median this much over another third's."""


def summarise(values: Sequence[float], interval: tuple[float, float] | None = None) -> dict[str, int]:
    """The report's timing of at least one value: median, quartiles, 95 % interval of the median, count.

    The interval is between order statistics (binomial), unless one is given."""
    ordered = sorted(values)
    count = len(ordered)
    lower, middle, upper = statistics.quantiles(ordered, n=4, method="inclusive") if count > 1 else [ordered[0]] * 3
    if interval is None:
        reach = 0.98 * math.sqrt(count)
        low = max(0, math.floor(count / 2 - reach))
        high = min(count - 1, math.ceil(count / 2 + reach) - 1)
        interval = ordered[low], ordered[max(low, high)]
    return {
        "medianNanoseconds": round(middle),
        "lowerQuartileNanoseconds": round(lower),
        "upperQuartileNanoseconds": round(upper),
        "intervalLowNanoseconds": round(min(interval[0], middle)),
        "intervalHighNanoseconds": round(max(interval[1], middle)),
        "cycles": count,
    }


class Cycles:
    """The iterations of one trial that count: those with the usual number of fetches (no evaluation in between, no
    skipped step), after each switch's first ones were dropped."""

    def __init__(self, cycles: Sequence[Cycle], workers: int = 0) -> None:
        self.bursty = workers > 1
        usual = collections.Counter(cycle[4] for cycle in cycles).most_common(1)
        self.fetches = usual[0][0] if usual else 0
        self.cycles = [cycle for cycle in cycles if cycle[4] == self.fetches]
        if not any(cycle[0] in (NATURAL, FROZEN) for cycle in self.cycles):
            # The script ended while warming up: the later half of what there is must do.
            warm = [cycle for cycle in self.cycles if cycle[0] == WARM]
            self.cycles = [(NATURAL, 0, True, *cycle[3:]) for cycle in warm[len(warm) // 2 :]]

    def of(self, mode: str) -> list[int]:
        return [cycle[3] for cycle in self.cycles if cycle[0] == mode and cycle[2]]

    def blocks(self, mode: str) -> list[list[int]]:
        grouped: dict[int, list[int]] = {}
        for cycle in self.cycles:
            if cycle[0] == mode and cycle[2]:
                grouped.setdefault(cycle[1], []).append(cycle[3])
        return list(grouped.values())

    def steady(self) -> bool:
        return all(_without_drift(self.of(mode)) for mode in (NATURAL, FROZEN))

    def compute(self) -> dict[str, int] | None:
        """T_C: frozen with the batches on the device where that was measured, else frozen, else as the script is."""
        values = self.of(RESIDENT) or self.of(FROZEN) or self.of(NATURAL)
        return summarise(values) if values else None

    def overhead(self) -> dict[str, int] | None:
        """T_O: what natural iterations take beyond T_C, at least 0. None if nothing was frozen."""
        base = RESIDENT if self.of(RESIDENT) else FROZEN
        return self._difference(NATURAL, base)

    def copying(self) -> int | None:
        """Host-to-device copy: what frozen iterations take beyond resident ones."""
        difference = self._difference(FROZEN, RESIDENT)
        return difference["medianNanoseconds"] if difference else None

    def loading(self) -> int | None:
        difference = self._difference(NATURAL, FROZEN)
        return difference["medianNanoseconds"] if difference else None

    def _difference(self, more: str, less: str) -> dict[str, int] | None:
        above, below = self.of(more), self.of(less)
        if not above or not below:
            return None
        base = statistics.median(below)
        differences = [max(0.0, value - base) for value in above]
        # Several workers deliver in bursts: some iterations wait long, others not at all. Only a mean sees both.
        usual = statistics.median([statistics.mean(block) for block in self.blocks(more)] if self.bursty else above)
        middle = max(0.0, usual - base)
        low, high = _interval(self.blocks(more), self.blocks(less))
        return dict(
            summarise(differences, (low, high)),
            medianNanoseconds=round(middle),
            intervalLowNanoseconds=round(min(low, middle)),
            intervalHighNanoseconds=round(max(high, middle)),
        )


def _interval(above: list[list[int]], below: list[list[int]]) -> tuple[float, float]:
    """95 % interval of the difference of medians, by resampling whole blocks: iterations within one are alike."""
    draw = random.Random(0)
    differences = sorted(
        statistics.median(_resampled(above, draw)) - statistics.median(_resampled(below, draw))
        for _ in range(RESAMPLES)
    )
    return max(0.0, differences[RESAMPLES // 40]), max(0.0, differences[-1 - RESAMPLES // 40])


def _resampled(blocks: list[list[int]], draw: random.Random) -> list[int]:
    return [value for block in draw.choices(blocks, k=len(blocks)) for value in draw.choices(block, k=len(block))]


def _without_drift(values: Sequence[int]) -> bool:
    if len(values) < 6:
        return True
    third = len(values) // 3
    medians = [statistics.median(values[start : start + third]) for start in (0, third, 2 * third)]
    return max(medians) <= STEADY * min(medians)
