"""One pod as a process of this machine: a process group with its log, seen from outside as a pod is."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from muster.jobs.model import Pod, Termination
from muster.local import strays
from muster.local.container import Command

_TERMINATION_BYTES = 4096  # as much of a termination message as Kubernetes keeps
_LAST_WORDS_SECONDS = 5.0  # for reading what is left in the pipe, which a process that fled the group may hold open


def termination_log(log: Path) -> Path:
    """The file beside a process's log that its termination message is read from, if it is there."""
    return log.with_suffix(".termination")


class Process:
    """Started when it is made. `pod` is its view before it runs; `on_line` is told each line, `on_end` its end."""

    def __init__(
        self,
        pod: Pod,
        command: Command,
        *,
        environment: Mapping[str, str],
        directory: Path,
        log: Path,
        on_line: Callable[[Pod, str], None],
        on_end: Callable[[], None],
    ) -> None:
        self._pod, self._command, self.log = pod, command, log
        self._on_line, self._on_end = on_line, on_end
        self._stop_at: float | None = None
        self._reason = self._could_not_start = ""
        self._reaped = False
        self._ended: datetime | None = None
        self._started = time.monotonic()
        self._lines = log.open("w", encoding="utf-8", errors="replace")
        self._popen: subprocess.Popen[str] | None = None
        try:
            self._popen = subprocess.Popen(
                command.argv,
                cwd=directory,
                env={**os.environ, **environment, strays.MARK: pod.uid},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                bufsize=1,
                start_new_session=True,  # its own group: ended as a whole, and out of reach of the terminal's Ctrl-C
            )
        except OSError as error:
            self._could_not_start = f"{command.argv[0]}: {error.strerror}"
            self._write(f"cannot start {self._could_not_start}")
            self._ended = datetime.now(UTC)
            self._lines.close()
            return
        self._reader = threading.Thread(target=self._read, name=f"{pod.name}-log", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name=pod.name, daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether it has ended, with all that it started."""
        return self._ended is not None

    def view(self) -> Pod:
        """The process as deciding sees it."""
        pod = replace(self._pod, deleting=self._stop_at is not None)
        if not self.ended:
            return replace(pod, phase="Running", ready=True)
        code = self._exit_code()
        if self._popen is None:
            ending = Termination(code, "StartError", self._could_not_start, self._ended)
        else:
            ending = Termination(code, "Completed" if code == 0 else "Error", self.termination_message(), self._ended)
        return replace(pod, phase="Succeeded" if code == 0 else "Failed", reason=self._reason, termination=ending)

    def tail(self, size: int) -> str:
        """The last bytes of its log, at most `size`."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - size))
            return log.read().decode(errors="replace")

    def termination_message(self) -> str:
        """What it wrote for its pod's status; without that the end of the log, as a failed pod falls back on it."""
        written = termination_log(self.log)
        if written.exists():
            return written.read_text(encoding="utf-8", errors="replace")[:_TERMINATION_BYTES]
        return self.tail(_TERMINATION_BYTES) if self.ended and self._exit_code() else ""

    def stop(self, grace_seconds: float | None = None) -> None:
        """Ask it to end; `tick` ends it by force when its grace is over."""
        if self._stop_at is None:
            grace = self._command.grace_seconds if grace_seconds is None else grace_seconds
            self._stop_at = time.monotonic() + grace
            self._signal(signal.SIGTERM)

    def tick(self) -> None:
        """Enforce what the kubelet would: the pod's deadline, and the end of its grace."""
        deadline = self._command.deadline_seconds
        if deadline is not None and not self.ended and not self._reason and time.monotonic() > self._started + deadline:
            self._reason = "DeadlineExceeded"
            self._signal(signal.SIGKILL)
        if self._stop_at is not None and time.monotonic() > self._stop_at:
            self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """End it and all it started, at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._popen is not None and not self._reaped:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)

    def _wait(self) -> None:
        assert self._popen is not None
        self._popen.wait()
        # A container ends with its first process. While anything of the group lives, its number is not given anew.
        self._signal(signal.SIGKILL)
        self._reaped = True
        strays.end(self._pod.uid)
        self._reader.join(_LAST_WORDS_SECONDS)
        self._ended = datetime.now(UTC)
        self._on_end()

    def _read(self) -> None:
        assert self._popen is not None
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self._write(line.rstrip("\n"))
        self._lines.close()

    def _write(self, line: str) -> None:
        self._lines.write(line + "\n")
        self._lines.flush()
        self._on_line(self._pod, line)

    def _exit_code(self) -> int:
        if self._popen is None:
            return 127
        code = self._popen.returncode
        return 128 - code if code < 0 else code
