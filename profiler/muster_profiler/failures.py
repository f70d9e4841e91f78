"""What a trial that brought no usable result means, in words that a user can act on. One table, first match wins."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster_profiler.process import Outcome

OUT_OF_MEMORY = "OutOfMemory"


class Problem(Exception):
    """The whole profile failed. `reason` is CamelCase, for programs; the message says what would fix it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True)
class Failure:
    """One trial failed."""

    reason: str
    message: str


SIGNS = (
    (
        "SharedMemory",
        r"out of shared memory|insufficient shared memory|unable to (open|write to|allocate) shared memory|"
        r"killed by signal: Bus error",
        "the loader's workers ran out of shared memory: mount an emptyDir with medium Memory at /dev/shm, "
        "or lower num_workers",
    ),
    (
        OUT_OF_MEMORY,
        r"OutOfMemoryError|out of memory|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|"
        r"DefaultCPUAllocator: (can't allocate|not enough) memory|std::bad_alloc|\bMemoryError\b|"
        r"Cannot allocate memory|DataLoader worker \(pid.*\) is killed by signal: Killed",
        "out of memory",
    ),
    (
        "NetworkNeeded",
        r"Temporary failure in name resolution|Name or service not known|Network is unreachable|ConnectionError: ",
        "the script could not reach the network: {last}. Put what it downloads into the image or a volume",
    ),
    ("MissingModule", r"ModuleNotFoundError: .*", "{match}: install it in the image"),
)


def why(outcome: Outcome) -> Failure:
    """Why this trial has no usable result."""
    result = outcome.results[0] if outcome.results else None
    error = (result or {}).get("error") or {}
    said = "%s: %s" % (error["type"], error["message"]) if error else ""
    if outcome.over_limit:
        return Failure(OUT_OF_MEMORY, "out of memory: ended when its container came within 3 % of its memory limit")
    if (outcome.status == -9 and not outcome.timed_out) or outcome.status == 137:
        return Failure(OUT_OF_MEMORY, "out of memory: the kernel killed the script (SIGKILL)")
    if error.get("type") == "ProfilerFault":
        return Failure("ProfilerFault", "the profiler failed, not the script: %s. Please report it" % error["message"])
    if result is not None and result["memory"].get("outOfMemory", 0):
        return Failure(OUT_OF_MEMORY, "out of memory: the script went on after it, but some of its steps were lost")
    for reason, pattern, message in SIGNS:
        match = re.search(pattern, said or outcome.tail) if outcome.status or error else None
        if match:
            text = message.format(last=_last_line(said or outcome.tail), match=match.group(0))
            return Failure(
                reason,
                text if reason != OUT_OF_MEMORY else "%s: %s" % (text, _line_with(said or outcome.tail, pattern)),
            )
    if outcome.timed_out:
        stage = (
            "after %d iterations" % result["iterations"]
            if result and result["iterations"]
            else "before its first iteration"
        )
        return Failure(
            "DeadlineExceeded",
            "the script was still running %s when its %.0f s were over: raise profile.activeDeadlineSeconds "
            "(--deadline-seconds), or shorten what it does before training" % (stage, outcome.seconds),
        )
    if outcome.status:
        return Failure(
            "ScriptFailed",
            "the script ended with exit status %d: %s. Run it once without Muster with the same arguments, and mend it"
            % (outcome.status, _last_line(said or outcome.tail) or "it printed nothing"),
        )
    if result is None:
        return Failure(
            "NoFramework",
            "no process of the command imported PyTorch with the profiler in place. Is it a training script, started "
            "without `python -I` or `-E` and with PYTHONPATH kept? Another framework can take part by writing the "
            "report itself",
        )
    return Failure("NoIterations", _no_iterations(result))


def _no_iterations(result: dict[str, object]) -> str:
    seen = result["seen"]
    assert isinstance(seen, dict)
    if not (seen["steps"] or seen["backwards"]):
        return (
            "the script ended after {fetches} batches from a DataLoader, without stepping a torch optimiser or calling "
            "backward: nothing to time. If it trains in another way, declare an entry point "
            "(python -m muster_profiler entry package.module:function)".format(**seen)
        )
    return (
        "the script ended after {fetches} batches, {steps} optimiser steps and {backwards} backward passes: too few to "
        "time an iteration. Let it run for at least 10 iterations when MUSTER_PROFILING is set".format(**seen)
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300].rstrip(".") if lines else ""


def _line_with(text: str, pattern: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if re.search(pattern, line)), _last_line(text))
