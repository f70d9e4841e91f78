"""Peak memory as a function of the mini-batch: the largest of two lines, one for each phase of an iteration.

M(B) = max(a_fb + b_fb B, a_step + b_step B). A single line through small batches, where the optimiser's step is the
peak, comes out too low at large ones, where forward and backward are: by up to 60 %. So each phase has its own line,
through its two largest measured batches.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

PHASES = ("forwardBackwardBytes", "optimizerStepBytes")


def lines(points: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """For each phase measured at two batches or more: bytes at batch 0, and bytes a sample (not below 0)."""
    found = {}
    for phase in PHASES:
        measured = sorted((p["miniBatch"], p["memory"][phase]) for p in points if phase in p.get("memory", {}))
        if len(measured) >= 2:
            (small, less), (large, more) = measured[-2:]
            slope = max(0.0, (more - less) / (large - small))
            found[phase] = (more - slope * large, slope)
    return found


def predicted_peak(points: Sequence[Mapping[str, Any]], mini_batch: int) -> int | None:
    """Bytes at the peak of a batch that was not measured; None with fewer than two that were."""
    values = [base + slope * mini_batch for base, slope in lines(points).values()]
    return round(max(values)) if values else None
