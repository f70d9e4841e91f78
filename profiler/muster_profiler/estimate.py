"""The memory of mini-batches that were not run yet: the script goes on for a few iterations with tensors that have
sizes and no data, so that any size fits and an iteration takes a fraction of a second.

It is the last stage of a trial, when all is measured. What the script does wrong on such tensors ends the estimate. It
must not write meanwhile, nor afterwards, when it may hold tensors without data and save them in the place of real ones.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Any, Callable, Sequence

from muster_profiler.frameworks import Pretence

MOST_FETCHES = 512
"""In all, should the script swallow the errors of every iteration."""
EACH = 3
"""Iterations at each mini-batch, of which the last counts: a script may train on what it fetched one iteration before,
and still hold what it trained on last; and the first gradients of all replace real ones."""
CHANGES = {"os.remove", "os.rename", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"}
CHANGES |= {"shutil.move", "shutil.rmtree", "sqlite3.connect"}
STARTS = {"os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.connect"}
"""Audit events (PEP 578) of changing files, beside `open` for writing, and of reaching out in other ways."""


class Estimate:
    """Peaks of both phases at mini-batches of `multiples` of the trial's own, and at its own for the difference."""

    def __init__(
        self, pretend: Callable[[], Pretence | None], multiples: Sequence[float], seconds: float, directory: str
    ) -> None:
        """
        :param seconds: for all iterations
        :param directory: the trial's, where writing is allowed
        :raises Exception: the script cannot be pretended with; nothing is changed then
        """
        self.multiples = [multiple for multiple in (1.0, *multiples) for _ in range(EACH)]
        self.found: list[dict[str, Any]] = []
        self.phases: dict[str, int] = {}
        self.done = self.fetches = 0
        self.handed = False
        self.until = time.monotonic() + seconds
        self.ended = False
        self.aside = _Aside(directory)
        try:
            pretence = pretend()
            if pretence is None:
                raise RuntimeError("it would tell nothing true")
        except BaseException:
            self.aside.end()
            self.aside.thread = None
            raise
        self.pretence = pretence

    def over(self) -> bool:
        """Whether it has taken enough."""
        self.fetches += 1
        return self.fetches > MOST_FETCHES or time.monotonic() > self.until

    def batch(self, outline: tuple[Any, int]) -> Any:
        """What the script gets in the place of a batch."""
        shape, samples = outline
        self.handed = True
        return self.pretence.batch(shape, samples, round(samples * self.multiples[self.done]))

    def phase(self, name: str) -> None:
        """A phase is over."""
        self.phases[name] = max(self.phases.get(name, 0), self.pretence.peak())
        self.pretence.restart_peak()

    def turn_over(self) -> None:
        """An iteration is over."""
        self.phase("optimizerStepBytes")
        self.done += 1
        if self.done % EACH == 0 and self.handed:
            self.found.append(dict(self.phases, multiple=self.multiples[self.done - 1]))
            self.handed = False
        self.phases = {}

    def end(self) -> None:
        """Back to what is real. The script may say and start things again, but change no file."""
        if self.ended:
            return
        self.ended = True
        with contextlib.suppress(Exception):
            self.pretence.end()
        self.aside.end()


class _Aside:
    """The script's output goes nowhere, and its training thread can do nothing to the world."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.join(directory, "")
        self.thread: int | None = threading.get_ident()
        self.over = False
        self.streams = [(stream, os.dup(stream)) for stream in (1, 2) if _is_open(stream)]
        self._turn([(stream, os.open(os.devnull, os.O_WRONLY)) for stream, _ in self.streams])
        sys.addaudithook(self._audit)

    def end(self) -> None:
        self.over = True  # the hook stays: Python has no way to take one back
        self._turn(self.streams)

    @staticmethod
    def _turn(streams: list[tuple[int, int]]) -> None:
        for file in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a script may have put anything in its place
                file.flush()
        for stream, target in streams:
            os.dup2(target, stream)
            os.close(target)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in STARTS:
            acts = not self.over
        elif event == "open":
            acts = _writes(*arguments) and not self._ours(arguments[:1])
        else:
            acts = event in CHANGES and not _within(event, arguments) and not self._ours(arguments)
        if acts and self.thread == threading.get_ident():
            raise PermissionError("while a profile estimates memory, and after that, the script can write nothing")

    def _ours(self, arguments: Sequence[Any]) -> bool:
        """Whether all paths among them lie in the trial's own directory."""
        paths = [os.fsdecode(each) for each in arguments if isinstance(each, (str, bytes, os.PathLike))]
        return all(path.startswith(self.directory) or path == os.devnull for path in paths)


def _writes(_path: Any, _mode: Any, flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _within(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it is part of the removal of a whole folder, which was asked for, and asked about, before."""
    return event in ("os.remove", "os.rmdir") and arguments[1] >= 0


def _is_open(stream: int) -> bool:
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True
