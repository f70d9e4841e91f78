"""Which convolution algorithms there are and what choosing among them brings the running step, with the time that the
candidates left.

First, for the mini-batches of the highest throughput, every layer's passes by every algorithm (in the script's own
process, see `frameworks`). Then the settings of the whole process that a job can be given, each on the whole step in a
process of its own: what a layer gains alone is no promise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from muster_profiler.points import point
from muster_profiler.process import Outcome
from muster_profiler.search import throughput

CAPS_MIB = (16, 256)
"""Of CUDNN_CONV_WSCAP_DBG: little memory, and what usually suffices."""
MOST_SECONDS = 30.0
"""For one mini-batch's layers."""
LEAST_SECONDS = 5.0
"""With less nothing is begun."""
STEP_SECONDS = 6.0
WORTH = 0.95
"""A setting is tried, or recommended, if it takes at most this share of the time."""
NO_TIME = "The candidates left no time for the convolutions' algorithms: give --convolution-seconds."

BENCHMARK, CHANNELS_LAST = "cudnn.benchmark", "channels_last"
HOW = {
    BENCHMARK: "set torch.backends.cudnn.benchmark = True in the script",
    CHANNELS_LAST: "convert the model in the script: model.to(memory_format=torch.channels_last)",
}
"""How the user applies a setting: neither can be set from outside."""

Trial = Callable[[int, Mapping[str, Any], Mapping[str, str]], Outcome]
"""Runs the script at a mini-batch, with these trial settings and this more of an environment."""


@dataclass
class Convolutions:
    """What was found; `left` tells the seconds that may still be spent."""

    trial: Trial
    left: Callable[[], float]
    rows: list[dict[str, Any]] = field(default_factory=list)
    trials: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)

    def measure(self, points: list[dict[str, Any]], device: str, environment: Mapping[str, str]) -> None:
        """For the points with times, best throughput first."""
        timed = sorted((p for p in points if p["fits"] and "computeTime" in p), key=throughput, reverse=True)
        for place, each in enumerate(timed):
            if self.left() < LEAST_SECONDS:
                if not place:
                    self._warn("ConvolutionsSkipped", NO_TIME)
                return
            rows = self._layers(each)
            if rows is None:
                return
            self.rows += rows
            if not place:
                for setting, more in self._settings(rows, device, environment):
                    if self.left() >= LEAST_SECONDS:
                        self._try(each, setting, more)

    def _layers(self, each: dict[str, Any]) -> list[dict[str, Any]] | None:
        """None: there is nothing to be learnt with other batches either."""
        seconds = min(MOST_SECONDS, self.left() / 2)
        settings = {"convolution_seconds": seconds, "warmup_steps": 2, "settle": False, "steps": 0, "memory_steps": 0}
        outcome = self.trial(each["miniBatch"], settings, {})
        result = outcome.results[0] if outcome.results else {}
        found = result.get("convolutions")
        if found is None:
            self._warn(
                "ConvolutionsNotMeasured", "The script's convolutions could not be measured: %s." % _why(outcome)
            )
            return None
        if found["leftOut"]:
            text = "No time was left for %d passes of convolutions at mini-batch %d: those that cost least."
            self._warn("ConvolutionsSkipped", text % (found["leftOut"], each["miniBatch"]))
        if found["troubles"]:
            self._warn("ConvolutionsNotMeasured", "Not measured: %s." % "; ".join(found["troubles"])[:1500])
        return [dict(row, miniBatch=each["miniBatch"]) for row in found["rows"]] or None

    def _settings(
        self, rows: list[dict[str, Any]], device: str, environment: Mapping[str, str]
    ) -> list[tuple[str, dict[str, str]]]:
        """What is worth a try on the whole step."""
        last = any(row.get("used", "").endswith(CHANNELS_LAST) for row in rows)
        if device != "cuda":
            return [(CHANNELS_LAST, {})] if not last and _promised(rows) <= WORTH else []
        own = environment.get("cudnnBenchmark") == "True"
        tried: list[tuple[str, dict[str, str]]] = [] if own else [(BENCHMARK, {})]
        tried += [(BENCHMARK, {"CUDNN_CONV_WSCAP_DBG": str(cap)}) for cap in CAPS_MIB]
        return tried + ([] if last else [(CHANNELS_LAST, {})])

    def _try(self, before: dict[str, Any], setting: str, more: dict[str, str]) -> None:
        batch = before["miniBatch"]
        settings = {"switch": setting, "steps": 10, "most_steps": 30, "seconds": min(STEP_SECONDS, self.left())}
        found, failure = point(batch, self.trial(batch, settings, more))
        name = " ".join([setting, *("%s=%s" % item for item in more.items())])
        if failure or "computeTime" not in found:
            text = "With %s the step could not be timed: %s."
            self._warn("ConvolutionsNotMeasured", text % (name, failure.message if failure else "it brought no times"))
            return
        tried = {"setting": name, "miniBatch": batch, "computeTime": found["computeTime"]}
        if "memory" in found:
            tried["peakBytes"] = found["memory"]["peakBytes"]
        self.trials.append(tried)
        was, now = before["computeTime"], found["computeTime"]
        apart = now["intervalHighNanoseconds"] < was["intervalLowNanoseconds"]
        if not more and apart and now["medianNanoseconds"] <= WORTH * was["medianNanoseconds"]:
            text = "With %s compute takes %.1f ms an iteration instead of %.1f ms at mini-batch %d (measured): %s."
            times = (each["medianNanoseconds"] / 1e6 for each in (now, was))
            self._warn("FasterSetting", text % (setting, *times, batch, HOW[setting]))

    def _warn(self, reason: str, message: str) -> None:
        self.warnings.append({"reason": reason, "message": message})


def _promised(rows: list[dict[str, Any]]) -> float:
    """The share of its convolutions' time that the model would take in channels_last, by its layers one by one."""
    now = then = 0
    for row in rows:
        times = {each["name"]: each["timeNanoseconds"] for each in row["algorithms"]}
        used = times.get(row.get("used"), min(times.values()))
        now += row["layers"] * used
        then += row["layers"] * min([t for name, t in times.items() if name.endswith(CHANNELS_LAST)] or [used])
    return then / now if now else 1.0


def _why(outcome: Outcome) -> str:
    if outcome.timed_out:
        return "it took too long"
    lines = [line.strip() for line in outcome.tail.splitlines() if line.strip()]
    return lines[-1][:300].rstrip(".") if outcome.status and lines else "it ended before its second iteration"
