"""Running other programs: output kept where a person finds it, and errors that say what would help."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_STARTED = time.monotonic()


class SetupError(Exception):
    """Something this machine lacks or could not do. The message is for the person at the terminal."""


class CannotRunHereError(SetupError):
    """What is missing is the machine's: no right, no tool and no way to install it. Tests skip for this reason."""


def say(message: str) -> None:
    """A line of progress on stderr, with the seconds since the start: stdout belongs to the answers."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {message}", file=sys.stderr, flush=True)


def run(
    *args: str | Path,
    log: Path | None = None,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> str:
    """Run a program to its end and return its stdout; with `log`, append stdout and stderr there and return "".

    Raises SetupError, with the last lines it printed, when it cannot be run, fails, or takes longer than `timeout_s`.
    """
    argv = [str(arg) for arg in args]
    full_env = {**os.environ, **env} if env else None
    try:
        if log is None:
            done = subprocess.run(
                argv, input=stdin, cwd=cwd, env=full_env, timeout=timeout_s, text=True, capture_output=True
            )
        else:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("a") as sink:
                done = subprocess.run(
                    argv, input=stdin, cwd=cwd, env=full_env, timeout=timeout_s, text=True, stdout=sink, stderr=sink
                )
    except FileNotFoundError as error:
        raise SetupError(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{_short(argv)} took longer than {timeout_s:g} s") from error
    if done.returncode != 0:
        text = log.read_text(errors="replace") if log else done.stderr or done.stdout
        tail = "\n".join(f"  {line}" for line in text.strip().splitlines()[-20:])
        where = f" (all of it: {log})" if log else ""
        raise SetupError(f"{_short(argv)} ended with exit code {done.returncode}{where}:\n{tail}")
    return done.stdout or ""


def succeeds(*args: str | Path, timeout_s: float = 20, env: Mapping[str, str] | None = None) -> bool:
    """Whether a program is there and ends with exit code 0 in time."""
    try:
        run(*args, timeout_s=timeout_s, env=env)
    except SetupError:
        return False
    return True


def can_apt() -> bool:
    """Whether Debian packages can be installed here: root on a Debian."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str) -> None:
    """Install Debian packages. Services that they bring are not relied on: a container starts none."""
    say(f"installing {', '.join(packages)} from Debian")
    run("apt-get", "update", "-q")
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages, env=env)


def _short(argv: Sequence[str]) -> str:
    line = " ".join(argv)
    return line if len(line) <= 160 else line[:157] + "..."
