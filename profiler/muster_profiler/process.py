"""Runs one trial of the script as a process of its own, forwards its output within bounds, and ends it in time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import IO, Any, Callable, Mapping

from muster_profiler import host, trial

FORWARDED = 256 << 10
"""Bytes of a trial's output that go to the log; the rest is counted, so that no flood pushes the report out."""
TAIL = 16 << 10
GRACE_SECONDS = 8.0
"""For a script to end by itself after its result is complete (checkpoints, `finally`), before it is killed."""
ESTIMATE_SECONDS = 12.0
"""On top, while it estimates memory."""


@dataclass(frozen=True)
class Outcome:
    """How a trial ended."""

    results: list[dict[str, Any]]
    """Of its processes, the leading one first; empty when no framework was imported."""
    status: int
    """Exit status; negative: the signal."""
    tail: str
    """The last of its output."""
    timed_out: bool
    over_limit: bool
    """Ended because its container was about to run out of memory."""
    seconds: float


class _Output:
    """Forwards lines to our own standard output, up to FORWARDED bytes, and keeps the tail."""

    def __init__(self, forward: bool) -> None:
        self.forward = forward
        self.forwarded = self.left_out = 0
        self.tail = b""

    def pump(self, pipe: IO[bytes]) -> None:
        for chunk in iter(lambda: pipe.readline(8192), b""):
            self.tail = (self.tail + chunk)[-TAIL:]
            if self.forwarded + len(chunk) > FORWARDED:
                self.left_out += len(chunk)
                continue
            self.forwarded += len(chunk)
            if self.forward:
                sys.stdout.buffer.write(chunk if chunk.endswith(b"\n") else chunk + b"\n")
                sys.stdout.buffer.flush()

    def close(self) -> None:
        if self.left_out and self.forward:
            print("muster-profile: %d KiB more of the script's output left out" % (self.left_out >> 10), flush=True)


def run(
    arguments: list[str],
    environment: Mapping[str, str],
    settings: trial.Settings,
    timeout: float,
    forward: bool = True,
    watch: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Outcome:
    """Run one trial to its end.

    :param timeout: seconds after which it is killed; what it had learnt by then still counts
    :raises OSError: the command cannot be started
    """
    began = time.monotonic()
    site = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inject", "site")
    inherited = environment.get("PYTHONPATH")
    env = {
        **environment,
        "PYTHONPATH": os.pathsep.join([site] + ([inherited] if inherited else [])),
        trial.SETTINGS: settings.write(),
        "MUSTER_PROFILING": "1",
        "TMPDIR": settings.directory,
    }
    process = subprocess.Popen(
        arguments,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    _killed_first(process.pid)
    output = _Output(forward)
    pump = threading.Thread(target=output.pump, args=(process.stdout,), daemon=True)
    pump.start()
    try:
        timed_out, over_limit = _wait(process, settings.directory, began + timeout, watch)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    pump.join(5)
    output.close()
    return Outcome(
        results=trial.read_results(settings.directory),
        status=process.returncode,
        tail=output.tail.decode(errors="replace"),
        timed_out=timed_out,
        over_limit=over_limit,
        seconds=time.monotonic() - began,
    )


def _wait(
    process: subprocess.Popen[bytes], directory: str, deadline: float, watch: Callable[[dict[str, Any]], None]
) -> tuple[bool, bool]:
    """Until the process ends, its result is complete and the grace over, the deadline, or memory runs short."""
    limit = host.memory_limit()
    complete: float | None = None
    looked = time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        now = time.monotonic()
        used = host.memory_used()
        if used is not None and used > 0.97 * limit:
            return False, True
        if now - looked < 0.5:
            continue
        looked = now
        results = trial.read_results(directory)
        if results:
            watch(results[0])
            if results[0]["final"] and complete is None:
                complete = now + ESTIMATE_SECONDS
            if results[0]["final"] and not results[0]["estimating"]:
                complete = min(now, complete or now)
        if complete is not None and now - complete > GRACE_SECONDS:
            return False, False
        if now > deadline:
            return complete is None, False
    return False, False


def _killed_first(pid: int) -> None:
    """When memory runs out, the kernel shall take the script and leave the profiler to report it."""
    with contextlib.suppress(OSError), open("/proc/%d/oom_score_adj" % pid, "w") as file:
        file.write("1000")
