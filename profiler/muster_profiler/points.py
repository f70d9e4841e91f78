"""From one trial's result to one point of the report."""

from __future__ import annotations

import statistics
from typing import Any

from muster_profiler.clock import DECLARED, FETCH, FETCH_BACKWARD
from muster_profiler.failures import OUT_OF_MEMORY, Failure, why
from muster_profiler.process import Outcome
from muster_profiler.timing import Cycles

MARGIN, SAFETY = 0.03, 0.02
"""The margin on peak memory is the larger of 3 % and what the allocator reserved beyond the peak, and 2 % more."""


def point(mini_batch: int, outcome: Outcome) -> tuple[dict[str, Any], Failure | None]:
    """The point, and why it has no times if it has none."""
    result = outcome.results[0] if outcome.results else None
    cycles = Cycles(result["cycles"], result["loaderWorkers"]) if result else Cycles([])
    compute = cycles.compute()
    failed = outcome.over_limit or (
        result is not None and (result["ended"] == "crashed" or result["memory"].get("outOfMemory", 0))
    )
    if result is None or compute is None or failed or (not result["final"] and not outcome.timed_out):
        failure = why(outcome)
        return {"miniBatch": mini_batch, "fits": False, "problem": failure.message}, failure
    overhead = cycles.overhead()
    found: dict[str, Any] = {
        "miniBatch": mini_batch,
        "fits": True,
        "steady": cycles.steady(),
        "fetchesPerIteration": cycles.fetches,
        "computeTime": compute,
        "overheadTime": overhead or dict(dict.fromkeys(compute, 0), cycles=compute["cycles"]),
    }
    parts = _parts(result, cycles)
    if parts:
        found["overheadParts"] = parts
    memory = _memory(result["memory"])
    if memory:
        found["memory"] = memory
        _judge(found, result)
    if not found["fits"]:
        return found, Failure(OUT_OF_MEMORY, found["problem"])
    return found, None


def _parts(result: dict[str, Any], cycles: Cycles) -> dict[str, int]:
    parts: dict[str, int] = {}
    loading, copying = cycles.loading(), cycles.copying()
    if loading is not None:
        collating = round(statistics.median(result["collateNanoseconds"])) if result["collateNanoseconds"] else None
        parts["loadNanoseconds"] = max(0, loading - (collating or 0))
        if collating is not None:
            parts["prepareNanoseconds"] = min(collating, loading)
    if copying is not None:
        parts["hostToDeviceNanoseconds"] = copying
    if result["updateNanoseconds"]:
        frozen = max(1, len([cycle for cycle in result["cycles"] if cycle[0] == "frozen"]))
        parts["updateNanoseconds"] = round(sum(result["updateNanoseconds"]) / frozen)
    return parts


def _memory(measured: dict[str, int]) -> dict[str, int] | None:
    phases: dict[str, int] = {
        key: measured[key] for key in ("forwardBackwardBytes", "optimizerStepBytes") if key in measured
    }
    if not phases:
        return None
    peak = max([*phases.values(), measured.get("startUpBytes", 0)])
    beyond = max(0, measured.get("reservedPeakBytes", 0) - peak)
    return dict(phases, peakBytes=peak, marginBytes=int(max(MARGIN * peak, beyond) + SAFETY * peak))


def _judge(point: dict[str, Any], result: dict[str, Any]) -> None:
    limit = result["device"]["memoryBytes"]
    needed = point["memory"]["peakBytes"] + point["memory"]["marginBytes"] + result["memory"].get("outsideBytes", 0)
    if needed > limit:
        point.update(fits=False, problem="needs %s with its margin, of %s" % (_gib(needed), _gib(limit)))
    elif result["memory"].get("retries", 0):
        point.update(fits=False, problem="fitted only after the allocator freed its cache: no room to spare")


def pass_samples(mini_batch: int | None, result: dict[str, Any]) -> int | None:
    """Samples of a pass over the data set, where it is known that its loader makes the mini-batches."""
    makes_them = result["loaderBatchSize"] == mini_batch and result["clock"] in (FETCH, FETCH_BACKWARD, DECLARED)
    samples: int | None = result["passSamples"]
    return samples if makes_them else None


def too_few(mini_batch: int, samples: int | None) -> str | None:
    """Why times of a batch would be those of smaller ones: a pass over the data set is no two whole batches."""
    if samples is None or mini_batch == samples or 2 * mini_batch <= samples:
        return None
    return "a pass over the data set has only %d samples: not two whole batches" % samples


def own_batch(result: dict[str, Any] | None) -> int | None:
    """The batch that the script's loader makes."""
    return (result["loaderBatchSize"] or result["samples"]) if result else None


def caveats(mini_batch: int | None, found: dict[str, Any], result: dict[str, Any]) -> list[dict[str, str]]:
    """What the reader of a point's numbers must know: warnings of the report."""
    loader, said = result["loaderBatchSize"], []
    if mini_batch and loader and loader != mini_batch:
        text = "The command was given %d, but its loader makes batches of %d."
        said.append(("MiniBatchMismatch", text % (mini_batch, loader)))
    if not mini_batch and not own_batch(result):
        said.append(("MiniBatchUnknown", "The script's own batch size could not be seen: the point says 1."))
    if not result["frozen"]:
        text = (
            "No DataLoader whose batches could be repeated was seen (clock: %s): overhead time could not be told "
            "from compute time and is given as 0."
        )
        said.append(("OverheadUnknown", text % result["clock"]))
    if not found["steady"]:
        text = (
            "Iteration times drifted by more than 10 % during the measurement: something else keeps the machine "
            "busy, or the script has no steady state. Profile it again, with more --steps (profile.steps)."
        )
        said.append(("NotSteady", text))
    if not (result["parameters"] or {}).get("tensors"):
        said.append(("ParametersUnknown", "No learnt parameters could be found."))
    return [{"reason": reason, "message": message} for reason, message in said]


def _gib(count: int) -> str:
    return "%.2f GiB" % (count / (1 << 30))
