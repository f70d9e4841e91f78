"""The memory of mini-batches that were not run yet: the script goes on for a few iterations with tensors that have
sizes and no data, so that any size fits and an iteration takes a fraction of a second.

It is the last stage of a trial, when all is measured. Whatever the script does wrong on such tensors ends the estimate
and nothing else; and it must not write: a checkpoint without data in the place of a real one would be a loss.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, Sequence

from muster_profiler.frameworks import Pretence

SECONDS = 5.0
"""For all iterations of the estimate."""
MOST_FETCHES = 512
"""In all, should the script swallow the errors of every iteration."""
WRITES = {"os.remove", "os.rename", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.system"}
WRITES |= {"shutil.move", "shutil.rmtree", "subprocess.Popen", "socket.connect"}
"""Audit events (PEP 578) of doing something to the world, beside `open` for writing."""


class Estimate:
    """Peaks of both phases at mini-batches of `multiples` of the trial's own, and at its own for the difference."""

    def __init__(self, pretence: Pretence, samples: int, multiples: Sequence[float]) -> None:
        self.pretence = pretence
        self.samples = samples
        self.multiples = [1.0, 1.0, *multiples]  # the first one's gradients replace real ones: it is not counted
        self.found: list[dict[str, Any]] = []
        self.phases: dict[str, int] = {}
        self.done = self.fetches = 0
        self.until = time.monotonic() + SECONDS
        self.aside = _Aside()

    def over(self) -> bool:
        """Whether it has taken enough."""
        self.fetches += 1
        return self.fetches > MOST_FETCHES or time.monotonic() > self.until

    def batch(self, outline: Any) -> Any:
        """What the script gets in the place of a batch."""
        return self.pretence.batch(outline, self.samples, round(self.samples * self.multiples[self.done]))

    def phase(self, name: str) -> None:
        """A phase is over."""
        self.phases[name] = max(self.phases.get(name, 0), self.pretence.peak())
        self.pretence.restart_peak()

    def turn_over(self) -> None:
        """An iteration is over."""
        self.phase("optimizerStepBytes")
        if self.done:
            self.found.append(dict(self.phases, multiple=self.multiples[self.done]))
        self.phases = {}
        self.done += 1

    def end(self) -> None:
        """Back to what is real."""
        self.pretence.end()
        self.aside.end()


class _Aside:
    """The script's output goes nowhere, and its training thread cannot write."""

    def __init__(self) -> None:
        self.thread: int | None = threading.get_ident()
        self.streams = [(stream, os.dup(stream)) for stream in (1, 2)]
        self._turn([(stream, os.open(os.devnull, os.O_WRONLY)) for stream, _ in self.streams])
        sys.addaudithook(self._audit)

    def end(self) -> None:
        self.thread = None  # the hook stays: Python has no way to take one back
        self._turn(self.streams)

    @staticmethod
    def _turn(streams: list[tuple[int, int]]) -> None:
        for file in (sys.stdout, sys.stderr):
            file.flush()
        for stream, target in streams:
            os.dup2(target, stream)
            os.close(target)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.thread == threading.get_ident() and (event in WRITES or _writes(event, arguments)):
            raise PermissionError("nothing is written while memory is estimated")


def _writes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event != "open":
        return False
    path, _, flags = arguments
    return path != os.devnull and isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
