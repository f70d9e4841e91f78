"""The operator process: everything wired together, started in the order that makes it safe, and stopped in peace.

The lease where there is one, then a complete listing, then the watches and the workers. What ends unexpectedly ends the
process: its pod starts it anew, and a new operator goes on where the old one was, wherever that was.
"""

import asyncio
import contextlib
import functools
import gc
import logging
import signal
import socket
from collections.abc import Callable

from muster import jobs, logs, metrics
from muster.cluster.cache import Cache, Key
from muster.cluster.client import JOBS, Client
from muster.cluster.errors import ApiError, NotFound, Rejected
from muster.cluster.events import Recorder
from muster.cluster.lease import Lease
from muster.cluster.mirror import Mirror
from muster.cluster.throttle import TokenBucket
from muster.cluster.watch import Watch
from muster.cluster.workqueue import WorkQueue
from muster.controller import Controller, Decide, Limits
from muster.jobs.settings import Settings as JobSettings
from muster.serving import serving
from muster.settings import Settings

_log = logging.getLogger(__name__)
_DRAIN_SECONDS = 10.0  # for the reconciles that run when the operator is told to stop
_STUCK_SECONDS = 600.0  # a job that has waited so long for its reconcile waits for workers that are not alive


class StartError(Exception):
    """The operator cannot start; the message says what would help."""


def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises StartError, or whatever else ended it."""
    logs.configure(settings.log_format, settings.log_level)
    gc.freeze()  # what is imported stays: looking through it at every collection takes a third of a listing's time
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(Operator(settings).run())


class Operator:
    """One process."""

    def __init__(self, settings: Settings, decide: Decide | None = None) -> None:
        self._settings = settings
        job_settings = JobSettings(profiler_image=settings.profiler_image)
        self._decide = decide or functools.partial(jobs.decide, settings=job_settings)
        self._identity = settings.identity or socket.gethostname()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._cache = Cache(self._queue.add)
        self._started = False
        self._trouble: Callable[[], str] = lambda: ""
        metrics.JOBS.set_function(lambda: len(self._cache.jobs))
        metrics.PODS.set_function(lambda: len(self._cache.pods))

    async def run(self) -> None:
        """Start, work, and stop when told to."""
        main = asyncio.current_task()
        assert main is not None
        for each in (signal.SIGTERM, signal.SIGINT):  # until the watch runtime takes them over
            asyncio.get_running_loop().add_signal_handler(each, main.cancel)
        settings = self._settings
        try:
            bucket = TokenBucket(settings.write_rate, settings.write_burst)
            client = await Client.connect(bucket, settings.kubeconfig, settings.context)
        except ApiError as error:
            raise StartError(str(error)) from error
        self._client = client
        lease = Lease(client, settings.lease_namespace, settings.lease_name, self._identity, settings.lease_seconds)
        async with serving(settings.metrics_port, settings.health_port, self._alive, self._ready):
            try:
                if settings.leader_elect:
                    await lease.acquire()
                await self._work(lease)
            finally:
                await lease.release()
                await client.close()

    async def _work(self, lease: Lease) -> None:
        settings, client = self._settings, self._client
        mirror = Mirror(
            client, self._cache, settings.namespaces, settings.resync_seconds, watch_nodes=settings.watch_nodes
        )
        try:
            await mirror.start()
        except NotFound as error:
            raise StartError(f"the cluster does not know {JOBS.plural}: apply the files of crds/ ({error})") from error
        except Rejected as error:
            raise StartError(f"the operator's role lacks a permission: {error}") from error
        limits = Limits(settings.parallel_actions, settings.count_interval_seconds)
        recorder = Recorder(client, self._identity)
        controller = Controller(self._decide, client, self._cache, self._queue, recorder, limits)
        self._trouble = controller.trouble
        workers = [asyncio.create_task(self._queue.work(controller.reconcile)) for _ in range(settings.workers)]
        keepers = [asyncio.create_task(mirror.run())]
        if settings.leader_elect:
            keepers.append(asyncio.create_task(lease.keep()))
        watch = asyncio.create_task(Watch(client, self._cache, mirror.gap).run(settings.namespaces, mirror.optional))
        self._started = True
        _log.info("watching %s", ", ".join(settings.namespaces) or "all namespaces")
        try:
            # The watch ends by itself on a signal; anything else that ends has failed.
            done, _ = await asyncio.wait([watch, *keepers, *workers], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            _log.info("stopping")
        finally:
            self._queue.stop()
            await asyncio.wait(workers, timeout=_DRAIN_SECONDS)
            await _end([watch, *keepers, *workers])

    async def _alive(self) -> str:
        waited = self._queue.longest_wait()
        return f"a job has waited {waited:.0f} s for a worker" if waited > _STUCK_SECONDS else ""

    async def _ready(self) -> str:
        try:
            await self._client.ping()
        except ApiError as error:
            return f"the API server does not answer: {error}"
        # A replica that stands by for the lease is ready to take over.
        return self._trouble() if self._started or self._settings.leader_elect else "the first listing is not done"


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
