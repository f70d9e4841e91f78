"""The mini-batches that a profile offers, in seconds, and the times between the measured ones.

A mini-batch is chosen by throughput, X / (T_C + T_O), among those that fit in memory. Nothing here takes memory or
time to grow with the batch: each measured point speaks for itself (a larger batch may run another algorithm).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.api.report import Point, Report, Timing
from muster.sizing import text

MEMORY_MARGIN = 0.05
"""Share of the device's memory that a plan leaves free: fragmentation, and steps that need more than those measured."""


@dataclass(frozen=True)
class Candidate:
    """One mini-batch on one GPU: times of an iteration in seconds, each with its interval, and its peak memory."""

    minibatch: int
    compute: float
    overhead: float
    compute_interval: tuple[float, float]
    overhead_interval: tuple[float, float]
    peak_bytes: int | None = None
    point: Point | None = None
    """The measured point; None where the times were interpolated."""

    @property
    def ratio(self) -> float:
        """R, the overhead ratio of Lemma 1."""
        return self.overhead / self.compute

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """The smallest and the largest R within the intervals of both times."""
        low, high = self.overhead_interval, self.compute_interval
        return low[0] / high[1], low[1] / high[0]

    @property
    def iteration(self) -> float:
        """Seconds of one iteration on one GPU."""
        return self.compute + self.overhead

    @property
    def samples_per_second(self) -> float:
        """Throughput of one GPU."""
        return self.minibatch / self.iteration


@dataclass(frozen=True)
class Rejected:
    """A mini-batch that cannot be chosen, and why in words."""

    minibatch: int
    reason: str
    message: str
    timed: Candidate | None = None
    """What it ran like: it did fit while profiled, but leaves too little memory free."""


def candidates(report: Report) -> tuple[list[Candidate], list[Rejected]]:
    """The report's points, ordered by mini-batch: those that fit with the margin, and those that do not."""
    fitting: list[Candidate] = []
    rejected: list[Rejected] = []
    memory = report.device.memory_bytes
    for point in sorted(report.points, key=lambda point: point.mini_batch):
        candidate = _candidate(point)
        peak = point.memory.peak_bytes if point.memory else 0
        if not point.fits or (memory and peak > memory * (1 - MEMORY_MARGIN)):
            rejected.append(_too_large(point, peak, memory, candidate if point.fits else None))
        elif candidate is None:
            rejected.append(Rejected(point.mini_batch, "Profile", f"{point.mini_batch} was not timed"))
        else:
            fitting.append(candidate)
    return fitting, rejected


def _candidate(point: Point) -> Candidate | None:
    compute, overhead = point.compute_time, point.overhead_time
    if compute is None or compute.median_nanoseconds == 0:
        return None
    return Candidate(
        minibatch=point.mini_batch,
        compute=compute.median_nanoseconds / 1e9,
        overhead=overhead.median_nanoseconds / 1e9 if overhead else 0.0,
        compute_interval=_interval(compute),
        overhead_interval=_interval(overhead) if overhead else (0.0, 0.0),
        peak_bytes=point.memory.peak_bytes if point.memory else None,
        point=point,
    )


def _interval(timing: Timing) -> tuple[float, float]:
    """The interval in seconds, made to hold the median whatever the report says."""
    median = timing.median_nanoseconds
    return min(timing.interval_low_nanoseconds, median) / 1e9, max(timing.interval_high_nanoseconds, median) / 1e9


def _too_large(point: Point, peak: int, memory: int, timed: Candidate | None) -> Rejected:
    batch = point.mini_batch
    if peak and memory and peak > memory:
        return Rejected(batch, "Memory", f"{batch} needs {text.size(peak)} of {text.size(memory)}", timed)
    if peak and point.fits:
        margin = text.percent(MEMORY_MARGIN)
        message = f"{batch} needs {text.size(peak)} of {text.size(memory)} and leaves less than {margin} free"
        return Rejected(batch, "Memory", message, timed)
    return Rejected(batch, "Memory", f"{batch} does not fit" + (f" ({point.problem})" if point.problem else ""))


class ComputeCurve:
    """T_C at any mini-batch, from the measured ones.

    Between measured points it is linear, beyond the largest it goes on as the last two do. Below the smallest, compute
    is taken as proportional to the batch: that is Lemma 1's own assumption.
    """

    def __init__(self, points: Sequence[Candidate]) -> None:
        self._points = sorted(points, key=lambda point: point.minibatch)

    @property
    def points(self) -> Sequence[Candidate]:
        """The measured mini-batches in rising order."""
        return self._points

    @property
    def measured(self) -> tuple[int, int]:
        """The smallest and the largest measured mini-batch."""
        return self._points[0].minibatch, self._points[-1].minibatch

    def compute(self, minibatch: float) -> float:
        """Seconds of compute at `minibatch` samples."""
        return self._at(minibatch, [point.compute for point in self._points])

    def scaled(self, factor: float) -> "ComputeCurve":
        """With every compute time `factor` times as long."""
        return ComputeCurve([replace(point, compute=point.compute * factor) for point in self._points])

    def candidate(self, minibatch: int) -> Candidate:
        """A candidate of that size: the measured one, or one between the measured ones."""
        for point in self._points:
            if point.minibatch == minibatch:
                return point
        compute = self.compute(minibatch)
        overhead = self._at(minibatch, [point.overhead for point in self._points])
        nearest = min(self._points, key=lambda point: abs(point.minibatch - minibatch))
        return replace(
            nearest,
            minibatch=minibatch,
            compute=compute,
            overhead=overhead,
            compute_interval=_scale(nearest.compute_interval, compute, nearest.compute),
            overhead_interval=_scale(nearest.overhead_interval, overhead, nearest.overhead),
            peak_bytes=None,
            point=None,
        )

    def _at(self, minibatch: float, values: Sequence[float]) -> float:
        sizes = [point.minibatch for point in self._points]
        if minibatch <= sizes[0] or len(sizes) == 1:
            return values[0] * minibatch / sizes[0]
        right = next((i for i, size in enumerate(sizes) if size >= minibatch), len(sizes) - 1)
        slope = (values[right] - values[right - 1]) / (sizes[right] - sizes[right - 1])
        estimate = values[right] + slope * (minibatch - sizes[right])
        # A falling last stretch says nothing about batches beyond it: never below the last point's time per batch.
        return estimate if minibatch <= sizes[-1] else max(estimate, values[-1])


def _scale(interval: tuple[float, float], value: float, of: float) -> tuple[float, float]:
    if of == 0:
        return value, value
    return interval[0] * value / of, interval[1] * value / of
