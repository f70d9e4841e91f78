"""Reports for the tests, from the few numbers that a case is about."""

from typing import Any

from muster.api.job import Framework, Goal, Scaling
from muster.api.report import Report
from muster.sizing import Limits

GBIT = 1.25e8


def timing(seconds: float, spread: float = 0.0) -> dict[str, int]:
    median = round(seconds * 1e9)
    low, high = round(median * (1 - spread)), round(median * (1 + spread))
    return {
        "medianNanoseconds": median,
        "lowerQuartileNanoseconds": low,
        "upperQuartileNanoseconds": high,
        "intervalLowNanoseconds": low,
        "intervalHighNanoseconds": high,
        "cycles": 20,
    }


def point(minibatch: int, compute: float, overhead: float, *, peak: int | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "miniBatch": minibatch,
        "fits": True,
        "computeTime": timing(compute),
        "overheadTime": timing(overhead),
    }
    if peak is not None:
        found["memory"] = {"peakBytes": peak}
    return found | more


def report(
    *points: dict[str, Any], parameter_bytes: int = 1_000_000, memory: int = 16 << 30, tensors: Any = (), **more: Any
) -> Report:
    return Report.model_validate(
        {
            "format": "muster.dev/profile/v1",
            "device": {"kind": "cuda", "name": "test", "memoryBytes": memory},
            "framework": {"name": "torch", "version": "2"},
            "parameters": {
                "bytes": parameter_bytes,
                "exchangedBytes": parameter_bytes,
                "tensors": [
                    {"name": f"t{i}", "elements": elements, "bytes": 4 * elements} for i, elements in enumerate(tensors)
                ],
            },
            "points": list(points),
            **more,
        }
    )


def limits(**more: Any) -> Limits:
    return Limits(
        **{
            "framework": Framework.GENERIC,
            "scaling": Scaling.STRONG,
            "uses_servers": False,
            "gpus_per_worker": 1,
            **more,
        }
    )


def efficiency(percent: int) -> Goal:
    return Goal(efficiencyPercent=percent)
