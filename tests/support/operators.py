"""Operator processes for tests: real ones, to be killed, forked from a server that has everything imported already."""

import asyncio
import contextlib
import functools
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["muster.operator"])

_STOP_SECONDS = 120
QUICK = {"metrics_port": 0, "health_port": 0, "count_interval_seconds": 0.1, "log_level": "info"}
"""Settings for tests: no ports, short waits."""


class OperatorProcess:
    """One operator after the other on one cluster, as its Deployment would have it."""

    def __init__(self, kubeconfig: Path, log: Path, **settings: object) -> None:
        self.settings = QUICK | {"kubeconfig": str(kubeconfig)} | settings
        self.log = log
        self._process: ForkServerProcess | None = None
        self.starts = 0

    def start(self) -> None:
        """Start one."""
        self.starts += 1
        self._process = _context.Process(target=_run, args=(self.settings, str(self.log)))
        self._process.start()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        """As the node's out-of-memory killer does."""
        self._signal(signal.SIGKILL)

    def _signal(self, which: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, which)

    async def stop(self) -> int:
        """As the kubelet does; returns the exit code."""
        if self._process is None:
            return 0
        self._signal(signal.SIGTERM)
        await asyncio.to_thread(self._process.join, _STOP_SECONDS)
        assert self._process.exitcode is not None, f"the operator did not stop within {_STOP_SECONDS} s"
        return self._process.exitcode

    async def keep_alive(self) -> None:
        """Start a new one whenever one has ended, until cancelled."""
        while True:
            if not self.alive:
                self.start()
            await asyncio.sleep(0.05)


def _run(settings: Mapping[str, object], log: str) -> None:
    sys.stdout = sys.stderr = Path(log).open("a", buffering=1)  # noqa: SIM115 - for the life of the process

    from muster import jobs, logs
    from muster.jobs.settings import Settings as JobSettings
    from muster.operator import Operator
    from muster.settings import Settings

    parsed = Settings.model_validate(settings)
    logs.configure(parsed.log_format, parsed.log_level)
    short = JobSettings(
        backoff_base=timedelta(seconds=0), refusal_retry=timedelta(seconds=1), overdue=timedelta(seconds=5)
    )
    try:
        asyncio.run(Operator(parsed, functools.partial(jobs.decide, settings=short)).run())
    except BaseException as error:
        print(f"ended by {error!r}", file=sys.stderr)
        raise
