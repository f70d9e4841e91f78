"""The report as it leaves the container: a line behind a marker (or numbered parts of it), and a summary of at most
4096 bytes for the termination message. Format `muster.dev/profile/v1`; `docs/profiling.md` describes both.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

FORMAT = "muster.dev/profile/v1"
MARKER = "MUSTER-REPORT"
PART = "MUSTER-REPORT-PART"
END = "MUSTER-REPORT-END"
LINE_BYTES = 64 << 10
TERMINATION_BYTES = 4096


def text(report: dict[str, Any]) -> str:
    """The report's one true text: ASCII, no spaces; its digest is of these bytes."""
    return json.dumps(report, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(content: str) -> str:
    return "sha256:" + hashlib.sha256(content.encode("ascii")).hexdigest()


def lines(content: str) -> list[str]:
    """What to print: one line, or numbered parts and an end with the count and the digest."""
    if len(MARKER) + 1 + len(content) <= LINE_BYTES:
        return ["%s %s" % (MARKER, content)]
    size = LINE_BYTES // 2
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    numbered = ["%s %d/%d %s" % (PART, number, len(parts), part) for number, part in enumerate(parts, 1)]
    return [*numbered, "%s %d %s" % (END, len(parts), digest(content))]


def summary(report: dict[str, Any], full_digest: str | None) -> str:
    """A valid report of at most 4096 bytes that is enough to size the job, with the digest of the whole one.

    What sizing needs least goes first."""
    reduced = json.loads(text(report))
    if full_digest:
        reduced["digest"] = full_digest
    for step in _REDUCTIONS:
        content = text(reduced)
        if len(content) <= TERMINATION_BYTES:
            return content
        step(reduced)
    return text(reduced)


def problem(reason: str, message: str) -> str:
    """The termination message of a profile that failed."""
    return text({"problem": {"reason": reason, "message": message[:1500]}})


def _largest_tensor_only(report: dict[str, Any]) -> None:
    tensors = report["parameters"].get("tensors", [])
    report["parameters"]["tensors"] = sorted(tensors, key=lambda tensor: -int(tensor["bytes"]))[:1]
    report["parameters"]["tensorCount"] = len(tensors)


def _without(*keys: str) -> Any:
    def step(report: dict[str, Any]) -> None:
        for key in keys:
            report.pop(key, None)

    return step


def _points_without(*keys: str) -> Any:
    def step(report: dict[str, Any]) -> None:
        for point in report["points"]:
            for key in keys:
                point.pop(key, None)

    return step


def _times_without(*keys: str) -> Any:
    def step(report: dict[str, Any]) -> None:
        for point in report["points"]:
            for time in (point.get("computeTime"), point.get("overheadTime")):
                for key in keys:
                    if time:
                        time.pop(key, None)

    return step


def _short_texts(report: dict[str, Any]) -> None:
    for item in report["points"]:
        if "problem" in item:
            item["problem"] = item["problem"][:60]
    for warning in report.get("warnings", []):
        warning["message"] = warning["message"][:60]
    report["device"]["name"] = report["device"]["name"][:60]


def _defaults_left_out(report: dict[str, Any]) -> None:
    for point in report["points"]:
        for key, default in (("steady", True), ("fetchesPerIteration", 1)):
            if point.get(key) == default:
                del point[key]


def _peak_only(report: dict[str, Any]) -> None:
    for point in report["points"]:
        if point.get("memory"):
            point["memory"] = {
                key: point["memory"][key] for key in ("peakBytes", "marginBytes") if key in point["memory"]
            }


def _latency_only(report: dict[str, Any]) -> None:
    report.get("network", {}).pop("latencies", None)


_REDUCTIONS = (
    _without("convolutions", "convolutionTrials"),
    _latency_only,
    _largest_tensor_only,
    _without("environment"),
    _points_without("overheadParts"),
    _short_texts,
    _times_without("lowerQuartileNanoseconds", "upperQuartileNanoseconds"),
    _peak_only,
    _without("warnings", "network"),
    _times_without("intervalLowNanoseconds", "intervalHighNanoseconds"),
    _defaults_left_out,
    _times_without("cycles"),
)
