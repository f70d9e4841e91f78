"""Peak memory as a function of the mini-batch: the largest of two curves, one for each phase of an iteration.

A single line through small batches, where the optimiser's step is the peak, comes out too low at large ones, where
forward and backward are: by up to 60 %. So each phase has its own: a line through its two largest measured batches. As
long as only one is measured, it is what the script was estimated to take (see `estimate`), moved so that it passes
through that one: an estimate knows the differences, but not what a library takes besides.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

PHASES = ("forwardBackwardBytes", "optimizerStepBytes")

Measured = Mapping[str, Any]
"""`miniBatch`, and `memory` where it was measured, as in a point of the report."""


@dataclass
class Peaks:
    """Peaks of mini-batches that were measured, and of some that were estimated."""

    measured: Sequence[Measured]
    estimated: dict[int, dict[str, int]] = field(default_factory=dict)
    """By mini-batch: bytes of each phase, without what is the same at every batch."""

    def peak(self, mini_batch: int) -> int | None:
        """Bytes at the peak of a batch that was not measured; None where too little is known."""
        known = [value for value in (self._phase(phase, mini_batch) for phase in PHASES) if value is not None]
        return round(max(known)) if known else None

    def largest(self, limit_bytes: float, cap: int) -> int | None:
        """The largest batch up to `cap` that is predicted to stay within the limit, 0 if none; None if unknown."""
        fits, too_large = 0, cap + 1
        while too_large - fits > 1:
            middle = (fits + too_large) // 2
            peak = self.peak(middle)
            if peak is None:
                return None
            fits, too_large = (middle, too_large) if peak <= limit_bytes else (fits, middle)
        return fits

    def _known(self, phase: str) -> list[tuple[int, int]]:
        return sorted((m["miniBatch"], m["memory"][phase]) for m in self.measured if phase in m.get("memory", {}))

    def _phase(self, phase: str, mini_batch: int) -> float | None:
        line = self._line(phase, mini_batch)
        return self._moved(phase, mini_batch) if line is None else line

    def _line(self, phase: str, mini_batch: int) -> float | None:
        known = self._known(phase)
        if len(known) < 2:
            return None
        (small, less), (large, more) = known[-2:]
        return more + max(0.0, (more - less) / (large - small)) * (mini_batch - large)

    def _moved(self, phase: str, mini_batch: int) -> float | None:
        known, curve = self._known(phase), sorted((b, e[phase]) for b, e in self.estimated.items() if phase in e)
        if not known or len(curve) < 2:
            return None
        batch, peak = known[-1]
        return max(0.0, peak + _at(curve, mini_batch) - _at(curve, batch))


def _at(curve: Sequence[tuple[int, int]], mini_batch: int) -> float:
    """Linear between the curve's points, and on beyond them."""
    right = min(max(1, bisect_left(curve, (mini_batch, 0))), len(curve) - 1)
    (small, less), (large, more) = curve[right - 1 : right + 1]
    return more + (more - less) / (large - small) * (mini_batch - large)
