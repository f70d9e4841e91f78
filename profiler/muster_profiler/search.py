"""Which mini-batch to try next, and which is the largest that fits, from those tried so far.

Candidates that nobody chose are only a start. From there it goes to larger ones while that pays, to smaller ones where
none fitted, and in between where the memory ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from muster_profiler.memory import Peaks

PAYS = 1.05
"""A larger batch is worth a try if the last larger one brought this much more throughput."""
APART = 1.1
"""Batches nearer to each other than this are not told apart."""
CLEARLY = 1.25
"""How far over the limit a predicted peak must be for a batch not to be tried: memory need not grow with the batch."""
AIM = 0.98
"""The share of the memory that a predicted peak may take: a little less than all, as a prediction is not exact."""
MOST_TIMES = 16
"""How many times the largest timed batch the largest that fits is looked for."""
MOST = 10**6

Point = Mapping[str, Any]


def throughput(point: Point) -> float:
    """Samples a second of a point with times, on one device."""
    iteration = point["computeTime"]["medianNanoseconds"] + point["overheadTime"]["medianNanoseconds"]
    return float(point["miniBatch"] * 1e9 / max(1, iteration))


@dataclass
class Tried:
    """All mini-batches tried so far."""

    points: list[dict[str, Any]] = field(default_factory=list)
    probes: list[dict[str, Any]] = field(default_factory=list)
    """Like points: mini-batches that were tried for their memory alone."""
    estimated: dict[int, dict[str, int]] = field(default_factory=dict)
    """By mini-batch: each phase's bytes as the script was estimated to take them (see `estimate`)."""
    too_much: set[int] = field(default_factory=set)
    """Those that ran out of memory, or were predicted to."""
    pass_samples: int | None = None
    """Of a pass over the script's data set, where it is known."""
    memory_bytes: int = 0
    """That the script may take."""

    def further(self) -> int | None:
        """The next mini-batch to time; None: no other is worth its time."""
        timed, bound = self._timed(), self.bound()
        if not timed:
            half = min(map(_size, self.points), default=1) // 2
            return (half if bound is None else min(half, bound)) or None
        largest = _size(timed[-1])
        if len(timed) > 1 and throughput(timed[-1]) < PAYS * throughput(timed[-2]):
            return None
        wanted = 2 * largest
        if bound is not None and bound < wanted:
            wanted = bound
        failed = self._failed(largest)
        wanted = (largest + failed) // 2 if failed and wanted >= failed else wanted
        wanted = min(_even(wanted), self._most())
        return wanted if wanted >= APART * largest else None

    def largest(self) -> dict[str, Any] | None:
        """The report's `largestMiniBatch`. None: unknown, far above all tried, or predicted where another failed."""
        fitting, bound = self._fitting(), self.bound()
        if not fitting:
            return None
        fits = _size(fitting[-1])
        failed = self._failed(fits)
        if _near(fits, bound) or _near(fits, failed):
            return {"miniBatch": fits, "verified": True}
        if bound is None or (failed is not None and bound >= failed):
            return None
        return {"miniBatch": bound, "verified": False}

    def unsure(self) -> int | None:
        """The mini-batch whose trial would tell most about the largest that fits. None: nothing more is to be told."""
        fitting, bound, largest = self._fitting(), self.bound(), self.largest()
        if not fitting or (largest and largest["verified"]):
            return None
        fits = _size(fitting[-1])
        failed = self._failed(fits)
        return (fits + failed) // 2 if failed and (bound is None or bound >= failed) else bound

    def bound(self) -> int | None:
        """The largest mini-batch that is predicted to fit with its margin; None: unknown, or far above all timed."""
        measured = [p for p in [*self.points, *self.probes] if "memory" in p]
        if not measured:
            return None
        last = max(measured, key=_size)
        share = last["memory"]["marginBytes"] / last["memory"]["peakBytes"]
        cap = min(MOST_TIMES * _size((self._timed() or [last])[-1]), self._most())
        found = self._peaks().largest(AIM * self.memory_bytes / (1 + share), cap)
        return None if found == cap else found

    def too_large(self, mini_batch: int) -> str | None:
        """Why a batch need not be tried: it is predicted to go far beyond the memory."""
        predicted = self._peaks().peak(mini_batch)
        if predicted is None or predicted <= CLEARLY * self.memory_bytes:
            return None
        sizes = (predicted / 2**30, self.memory_bytes / 2**30)
        return "not tried: by the smaller ones it would need %.1f GiB of %.1f GiB" % sizes

    def foretold(self, found: dict[str, Any]) -> None:
        """Put beside a new point's peak what was predicted before the batch was tried."""
        predicted = self._peaks().peak(found["miniBatch"])
        if predicted is not None and "memory" in found:
            found["memory"]["predictedPeakBytes"] = predicted

    def seconds(self, mini_batch: int, iterations: int) -> float:
        """What so many iterations of a batch may take; 0 if nothing is known."""
        timed = self._timed()
        return iterations * mini_batch / throughput(timed[-1]) if timed else 0.0

    def _most(self) -> int:
        """The largest mini-batch of which a pass has two whole ones."""
        return MOST if self.pass_samples is None else min(MOST, max(1, self.pass_samples // 2))

    def _peaks(self) -> Peaks:
        return Peaks([*self.points, *self.probes], self.estimated)

    def _timed(self) -> list[dict[str, Any]]:
        return sorted((p for p in self.points if p["fits"] and "computeTime" in p), key=_size)

    def _fitting(self) -> list[dict[str, Any]]:
        return sorted((p for p in [*self.points, *self.probes] if p["fits"] and "memory" in p), key=_size)

    def _failed(self, fits: int) -> int | None:
        """The smallest above one that fits that was too large."""
        return min((batch for batch in self.too_much if batch > fits), default=None)


def _size(point: Point) -> int:
    return int(point["miniBatch"])


def _near(fits: int, beyond: int | None) -> bool:
    """Whether nothing worth a try lies between."""
    return beyond is not None and beyond <= max(fits + 1, APART * fits)


def _even(batch: int) -> int:
    """Down to a multiple of 8, which hardware likes, where that loses little."""
    return batch // 8 * 8 if batch >= 32 else batch
