"""Finds the profile report in what a profiling pod leaves behind: its log and its termination message.

Both come out of a user's container: the log may be flooded, rotated, cut, or hold lines that only look like a report.
The termination message, where the profiler could write it, says by its digest which report is the true one, and is
itself a report small enough to always get through. Nothing here trusts more than the report's schema.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from muster.api.report import FORMAT, Report

MARKER = "MUSTER-REPORT"
MAX_REPORT_BYTES = 8 << 20
MAX_LINE_BYTES = 64 << 10
MAX_TERMINATION_BYTES = 4096
MAX_CANDIDATES = 16
"""Lines that look like a report's end are tried from the last backwards, this many."""

_PART = re.compile(rf"^{MARKER}-PART (\d{{1,4}})/(\d{{1,4}}) (.*)$")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")
_END = re.compile(rf"^{MARKER}-END (\d{{1,4}}) (sha256:[0-9a-f]{{64}})$")


class ReportError(ValueError):
    """There is no usable report. `reason` is CamelCase; the message is a sentence for the user."""

    def __init__(self, message: str, reason: str = "ReportInvalid") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def read(log_text: str, termination_message: str) -> tuple[Report, str]:
    """The report of a profiling pod, and its digest.

    The whole report is taken from the log when its digest is the one that the termination message names; else the
    summary in the termination message; else, where there is no summary, the last valid report of the log.

    :raises ReportError: the profiler says why it failed, or nothing usable was left
    """
    summary = _termination(termination_message)
    if summary is None:
        for content in _contents(log_text):
            report = _parsed(content)
            if isinstance(report, Report):
                return report, digest(content)
        raise ReportError(_nothing(log_text, termination_message), "ReportMissing")
    named = summary.get("digest")
    if isinstance(named, str):
        for content in _contents(log_text):
            if digest(content) == named:
                report = _parsed(content)
                if isinstance(report, Report):
                    return report, named
    content = termination_message.strip()
    report = _parsed(content)
    if isinstance(report, Report):
        return report, named if isinstance(named, str) and _DIGEST.fullmatch(named) else digest(content)
    raise ReportError(f"The profile's summary in the pod's termination message is not valid: {report}")


def parse(text: str) -> Report:
    """A report from a file or a ConfigMap.

    :raises ReportError: it is not one; the message names the first wrong field
    """
    if len(text) > MAX_REPORT_BYTES:
        raise ReportError(f"The profile report is longer than {MAX_REPORT_BYTES >> 20} MiB.")
    report = _parsed(text)
    if isinstance(report, Report):
        return report
    raise ReportError(f"The profile report is not valid: {report}")


def digest(text: str) -> str:
    """The digest by which a report is known: of its text, without white space around it."""
    return "sha256:" + hashlib.sha256(text.strip().encode()).hexdigest()


def _termination(message: str) -> dict[str, Any] | None:
    """The summary in the termination message, if it is one; raises if it tells of a problem."""
    if not message.lstrip().startswith("{") or len(message.encode()) > MAX_TERMINATION_BYTES:
        return None
    try:
        content = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    problem = content.get("problem")
    if isinstance(problem, dict) and isinstance(problem.get("message"), str):
        reason = problem.get("reason")
        known = reason if isinstance(reason, str) and _REASON.fullmatch(reason) else "ProfilerFailed"
        raise ReportError(_sentence(problem["message"]), known)
    return content if "format" in content else None


def _sentence(text: str) -> str:
    text = " ".join(text.split())[:1500]
    return text[:1].upper() + text[1:]


def _contents(log_text: str) -> Iterator[str]:
    """The texts in the log that say they are a report, the last first: whole lines, and parts whose digest is right."""
    lines = log_text.rstrip().splitlines()
    tried = 0
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if not line.startswith(MARKER) or tried >= MAX_CANDIDATES:
            continue
        if line.startswith(MARKER + " {") and len(line) <= MAX_LINE_BYTES:
            tried += 1
            yield line[len(MARKER) + 1 :].strip()
        end = _END.match(line)
        if end:
            tried += 1
            joined = _joined(lines, index, int(end[1]))
            if joined is not None and digest(joined) == end[2]:
                yield joined


def _joined(lines: list[str], end: int, count: int) -> str | None:
    """The parts 1 to `count` before line `end`, other lines between them left out; None if one is missing."""
    parts: dict[int, str] = {}
    size = 0
    for index in range(end - 1, -1, -1):
        part = _PART.match(lines[index]) if lines[index].startswith(MARKER) else None
        if part and int(part[2]) == count and int(part[1]) not in parts:
            parts[int(part[1])] = part[3]
            size += len(part[3])
        if size > MAX_REPORT_BYTES:
            return None
        if len(parts) == count:
            break
    wanted = range(1, count + 1)
    return "".join(parts[number] for number in wanted) if parts.keys() == set(wanted) else None


def _parsed(content: str) -> Report | str:
    """The report, or what is wrong with it."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON ({error})" if isinstance(error, ValueError) else "it is nested too deeply"
    if not isinstance(raw, dict):
        return "it is no JSON object"
    if "format" not in raw:
        return f"it has no format, which is {FORMAT!r} in a report"
    if raw["format"] != FORMAT:
        return f"its format is {str(raw['format'])[:80]!r}, this version of Muster reads {FORMAT!r}"
    try:
        return Report.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    except RecursionError:
        return "it is nested too deeply"


def _nothing(log_text: str, termination_message: str) -> str:
    last = next((line.strip() for line in reversed(log_text.splitlines()) if line.strip()), "")
    said = termination_message.strip().splitlines()[-1:] or [last]
    text = f"The profiling pod ended without a report: its log has no valid line that starts with {MARKER}."
    return text + (f" The last it said: {said[0][:300]}" if said[0] else " It said nothing.")
