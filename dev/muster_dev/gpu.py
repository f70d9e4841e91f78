"""What `make gpu-check` asks of a GPU, and how each answer is judged: the profiler's report against what the same
script sees of itself in a plain run. `dev/gpu_check.py` runs things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from muster_profiler.memory import Peaks

BATCHES = (64, 128, 256)
TIMED = 1024
BEYOND = (512, 1024)
"""Mini-batches whose peak is predicted from BATCHES."""
SETTINGS = (
    "cudnn.benchmark",
    "cudnn.benchmark CUDNN_CONV_WSCAP_DBG=16",
    "cudnn.benchmark CUDNN_CONV_WSCAP_DBG=256",
    "channels_last",
)
BETWEEN_SECONDS = 0.0002
"""What the host takes between two iterations: the profiler counts it as compute, the script's own events do not."""
ESTIMATE = "memory estimated before it was tried"
MOST = 1 << 22
"""Mini-batch up to which the largest that fits is looked for."""
TOO_MUCH = 1.15
"""Times the memory there is: what must run out of it."""

Result = Literal["ok", "failed", "not here"]


class NotHereError(Exception):
    """This machine lacks what an item needs; the message says what."""


class CheckFailedError(Exception):
    """A run that an item needs did not succeed; the message says how it ended."""


class Machine(Protocol):
    """Runs `dev/gpu_train.py`."""

    front_end: bool
    """Whether its Python has nvidia-cudnn-frontend."""

    def plain(self, kind: str, batch: int, iterations: int = 40) -> dict[str, Any]:
        """What the script says of itself. :raises CheckFailedError: it did not end well"""

    def profile(self, name: str, kind: str, batches: tuple[int, ...], **options: Any) -> dict[str, Any]:
        """A report; or, where no candidate fits, {"problem": {...}}. :raises CheckFailedError:"""

    def watched(self, kind: str, batch: int) -> float:
        """Seconds of the script's iteration, watched by the profiler and otherwise left alone."""


@dataclass(frozen=True)
class Finding:
    """One row of the table."""

    item: str
    result: Result
    measured: str


def findings(machine: Machine) -> Iterator[Finding]:
    """All items, those first on which most depends."""
    for items, check in (
        (("compute time", "host-to-device copy", "overhead time"), _times),
        (("convolution algorithms", "cuDNN's single plans", *SETTINGS, "parameters", "memory by two lines"), _network),
        (("mixed precision with GradScaler",), lambda machine: _compute(machine, "amp")),
        (("torch.compile",), lambda machine: _compute(machine, "compiled")),
        (("overhead of measuring",), _measuring),
    ):
        yield from _guarded(items, check, machine)


def _guarded(items: tuple[str, ...], check: Callable[[Any], Iterator[Finding]], machine: Machine) -> Iterator[Finding]:
    """What `check` finds; the items that it did not come to share its end."""
    found = set()
    try:
        for finding in check(machine):
            found.add(finding.item)
            yield finding
    except NotHereError as error:
        yield from (Finding(item, "not here", str(error)) for item in items if item not in found)
    except CheckFailedError as error:
        yield from (Finding(item, "failed", str(error)) for item in items if item not in found)


def _times(machine: Machine) -> Iterator[Finding]:
    truth = machine.plain("eager", TIMED)
    point = _point(machine.profile("eager", "eager", (TIMED,), convolution_seconds=0))
    compute = truth["computeSeconds"]
    yield _close("compute time", _seconds(point["computeTime"]), compute, 0.03 * compute + BETWEEN_SECONDS)
    copying = point.get("overheadParts", {}).get("hostToDeviceNanoseconds", 0) / 1e9
    yield _close("host-to-device copy", copying, truth["copySeconds"], max(0.1 * truth["copySeconds"], 0.01 * compute))
    overhead = truth["iterationSeconds"] - compute
    yield _close("overhead time", _seconds(point["overheadTime"]), overhead, max(0.03 * compute, 0.03 * overhead))


def _compute(machine: Machine, kind: str) -> Iterator[Finding]:
    item = {"amp": "mixed precision with GradScaler", "compiled": "torch.compile"}[kind]
    compute = machine.plain(kind, TIMED)["computeSeconds"]
    point = _point(machine.profile(kind, kind, (TIMED,), convolution_seconds=0))
    yield _close(item, _seconds(point["computeTime"]), compute, 0.03 * compute + BETWEEN_SECONDS)


def _network(machine: Machine) -> Iterator[Finding]:
    report = machine.profile("network", "eager", BATCHES, steps=5, convolution_seconds=70)
    _point(report)
    yield from _convolutions(report, machine.front_end)
    yield from _settings(report)
    truth = {batch: machine.plain("eager", batch, iterations=8) for batch in BEYOND}
    yield _parameters(report, truth[BEYOND[0]])
    yield _estimate(report)
    yield _memory(report, truth)
    yield from _guarded(
        ("largest batch that fits", "out of memory is a result"), lambda m: _limit(m, report, truth[BEYOND[0]]), machine
    )


def _parameters(report: Mapping[str, Any], truth: Mapping[str, Any]) -> Finding:
    found = {each["name"]: each["bytes"] for each in report["parameters"]["tensors"]}
    total = sum(truth["parameters"].values())
    right = list(found.items()) == list(truth["parameters"].items()) and report["parameters"]["exchangedBytes"] == total
    said = f"{len(found)} tensors, {report['parameters']['exchangedBytes']} of {total} bytes exchanged"
    return Finding("parameters", "ok" if right else "failed", said)


def _memory(report: Mapping[str, Any], truth: Mapping[int, Mapping[str, Any]]) -> Finding:
    errors = {}
    for batch, seen in truth.items():
        predicted = Peaks(report["points"]).peak(batch)
        if predicted is None:
            raise CheckFailedError("fewer than two mini-batches have a peak")
        errors[batch] = predicted / seen["peakBytes"] - 1
    said = ", ".join(f"{error:+.1%} at {batch}" for batch, error in errors.items())
    return Finding("memory by two lines", "ok" if max(map(abs, errors.values())) <= 0.02 else "failed", said)


def _limit(machine: Machine, report: Mapping[str, Any], truth: Mapping[str, Any]) -> Iterator[Finding]:
    room = report["device"]["memoryBytes"] - truth["outsideBytes"]
    memory = report["points"][-1]["memory"]
    peaks = Peaks(report["points"])
    largest = peaks.largest(room / (1 + memory["marginBytes"] / memory["peakBytes"]), MOST) or 1
    retries = machine.plain("eager", largest, iterations=4)["retries"]
    said = f"{largest}" + (f", after the allocator had to free its cache {retries} times" if retries else "")
    yield Finding("largest batch that fits", "failed" if retries else "ok", said)
    beyond = peaks.largest(room * TOO_MUCH, MOST) or 1
    problem = machine.profile("too-large", "eager", (beyond,), steps=5, convolution_seconds=0).get("problem", {})
    result: Result = "ok" if problem.get("reason") == "OutOfMemory" else "failed"
    yield Finding("out of memory is a result", result, f"at {beyond}: {problem.get('reason', 'it fitted')}")


def _estimate(report: Mapping[str, Any]) -> Finding:
    """The second mini-batch, whose peak could be predicted only from the first one's tensors without data."""
    memory = report["points"][1]["memory"]
    if "predictedPeakBytes" not in memory:
        return Finding(ESTIMATE, "failed", "there was none")
    error = memory["predictedPeakBytes"] / memory["peakBytes"] - 1
    return Finding(ESTIMATE, "ok" if abs(error) <= 0.05 else "failed", f"{error:+.1%} at {BATCHES[1]}")


def _convolutions(report: Mapping[str, Any], front_end: bool) -> Iterator[Finding]:
    rows = report.get("convolutions", [])
    warnings = {each["reason"]: each["message"] for each in report["warnings"]}
    said = warnings.get("ConvolutionsNotMeasured", "")
    right = rows and all(row.get("used") in {each["name"] for each in row["algorithms"]} for row in rows)
    ways = sum(len(row["algorithms"]) for row in rows)
    summary = f"{len(rows)} passes, {ways} ways" if rows else said or "none were reported"
    yield Finding("convolution algorithms", "ok" if right else "failed", summary)
    plans = [each for row in rows for each in row["algorithms"] if each["name"].startswith("cudnn:")]
    kinds = ", ".join(sorted({each["kind"] for each in plans}))
    item = "cuDNN's single plans"
    if not front_end:
        yield Finding(item, "not here", "this Python has no nvidia-cudnn-frontend")
    else:
        yield Finding(item, "ok" if plans else "failed", f"{len(plans)} plans: {kinds}" if plans else said[:200])


def _settings(report: Mapping[str, Any]) -> Iterator[Finding]:
    before = {point["miniBatch"]: _seconds(point["computeTime"]) for point in report["points"] if point["fits"]}
    trials = {each["setting"]: each for each in report.get("convolutionTrials", [])}
    for setting in SETTINGS:
        if setting not in trials:
            yield Finding(setting, "failed", "not tried on the whole step")
            continue
        now = _seconds(trials[setting]["computeTime"])
        batch = trials[setting]["miniBatch"]
        change = now / before[batch] - 1
        said = f"the step at {batch}: {now * 1e3:.2f} ms instead of {before[batch] * 1e3:.2f} ms ({change:+.1%})"
        yield Finding(setting, "ok", said)


def _measuring(machine: Machine) -> Iterator[Finding]:
    alone = machine.plain("eager", TIMED)["iterationSeconds"]
    watched = machine.watched("eager", TIMED)
    cost = watched / alone - 1
    yield Finding("overhead of measuring", "ok" if cost <= 0.01 else "failed", f"{cost:+.2%} of {alone * 1e3:.2f} ms")


def _point(report: Mapping[str, Any]) -> dict[str, Any]:
    point: dict[str, Any] = next(iter(report.get("points", [])), {})
    if "computeTime" not in point:
        raise CheckFailedError(point.get("problem") or report["problem"]["message"])
    return point


def _seconds(timing: Mapping[str, int]) -> float:
    return timing["medianNanoseconds"] / 1e9


def _close(item: str, found: float, true: float, allowed: float) -> Finding:
    said = f"{found * 1e3:.2f} ms, true {true * 1e3:.2f} ms ({found / true - 1:+.1%})"
    return Finding(item, "ok" if abs(found - true) <= allowed else "failed", said)
