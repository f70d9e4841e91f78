"""key -> observe -> decide -> write the status -> act -> events: where `jobs`, which decides, meets `cluster`.

Nothing here knows what a job needs. What it remembers between two reconciles (refusals, reports) can be lost at any
moment: the next reconcile finds it out again.
"""

import asyncio
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from muster import metrics
from muster.api import labels
from muster.api.status import TrainingJobStatus
from muster.cluster.act import Actor, Reading
from muster.cluster.cache import Cache, Key
from muster.cluster.client import JOBS, Client
from muster.cluster.errors import ApiError, Conflict, NotFound, OldDefinition, Rejected, Throttled, Transient
from muster.cluster.events import Recorder
from muster.cluster.workqueue import WorkQueue
from muster.jobs.model import (
    Action,
    CreateConfigMap,
    CreatePod,
    Decision,
    Event,
    Job,
    Observed,
    Progress,
    Refusal,
    Role,
)
from muster.logs import Subject, subject

_log = logging.getLogger(__name__)
_REFUSED_SECONDS = 5.0  # before a refused request is made again, at least
_AWAY_SECONDS = 15.0  # between two tries while the server is away, at most: how long it was is not the job's doing
_OLD_SECONDS = 60.0  # between two tries of a status that the cluster's definition does not hold
_REPORTS = 64  # kept in memory; one that is pushed out is read again
_COUNTS = ("workers", "servers", "chief", "evaluator", "scheduler")
_PROFILING = (Role.PROFILER, Role.PEER)

Decide = Callable[[Observed, datetime], Decision]


@dataclass(frozen=True)
class Limits:
    """How much is done at once, and how often."""

    parallel_actions: int = 16
    count_interval_seconds: float = 1.0


class Controller:
    """Reconciles jobs by key. Several workers share one; the queue sees to it that no two have the same key."""

    def __init__(
        self, decide: Decide, client: Client, cache: Cache, queue: WorkQueue[Key], recorder: Recorder, limits: Limits
    ) -> None:
        self._decide = decide
        self._client = client
        self._cache = cache
        self._queue = queue
        self._recorder = recorder
        self._limits = limits
        self._actor = Actor(client, cache)
        self._refusals: dict[Key, dict[str, Refusal]] = {}
        self._reports: OrderedDict[Key, Reading] = OrderedDict()
        self._progress: dict[Key, Progress] = {}
        self._written_at: dict[Key, float] = {}
        self._unwritable: dict[Key, str] = {}

    def trouble(self) -> str:
        """What keeps jobs from going on that is none of theirs, empty where nothing does."""
        return next(iter(self._unwritable.values()), "")

    async def reconcile(self, key: Key) -> None:
        """Bring one job a step further, and see to it that it is looked at again. No job's trouble is another's."""
        start = time.monotonic()
        outcome = "error"
        try:
            known = self._reports.get(key)
            await self._reconcile(key)
            if self._reports.get(key) is not known:
                # Used at once: in the queue behind others, whose reports push it out, it would be read again for ever.
                await self._reconcile(key)
            self._queue.succeeded(key)
            self._unwritable.pop(key, None)
            outcome = "success"
        except Conflict as error:
            # What was decided rests on an old version of the job.
            await self._refresh(key)
            _log.info("looking again: %s", error)
            self._queue.retry(key)
        except Throttled as error:
            _log.warning("waiting as told: %s", error)
            self._queue.retry(key, at_least=error.retry_after)
        except OldDefinition as error:
            _log.error(
                "trying again in %.0f s: %s", self._queue.retry(key, at_least=_OLD_SECONDS, at_most=_OLD_SECONDS), error
            )
            await self._tell_unwritable(key, error)
        except Transient as error:
            _log.warning("trying again in %.1f s: %s", self._queue.retry(key, at_most=_AWAY_SECONDS), error)
        except ApiError as error:
            _log.warning("trying again in %.1f s: %s", self._queue.retry(key), error)
        except Exception:  # noqa: BLE001 - a poisonous job must not stop the others
            _log.exception("this is a bug in Muster; trying again in %.1f s", self._queue.retry(key))
        finally:
            subject.set(None)
            metrics.RECONCILE_SECONDS.labels(outcome).observe(time.monotonic() - start)

    async def _reconcile(self, key: Key) -> None:
        # The version is that of the job that is decided on: a status must not undo one that it does not know of.
        observed, version = self._observe(key), self._cache.jobs.version(key, key.name)
        if observed is None:
            self._forget(key)
            return
        job, now = observed.job, datetime.now(UTC)
        subject.set(Subject(job.namespace, job.name, job.uid))
        decision = self._decide(observed, now)
        if decision.status.attempt > max(1, job.status.attempt) and await self._actor.look(job):
            return  # pods that the cache lacked, or that were gone: the news has queued the key again
        wait = self._count_wait(key, job, decision.status)
        written = False
        if decision.status_first and wait is None:
            written = await self._write_status(key, job, version, decision.status, now)
        try:
            done = await self._act(key, job, decision.actions, now)
            if done and not decision.status_first and wait is None:
                written = await self._write_status(key, job, version, decision.status, now)
        finally:
            if written:
                for event in decision.events:
                    await self._recorder.post(job, event)
        if done and _starts_training(observed, decision):
            metrics.TIME_TO_FIRST_POD.observe(max(0.0, (now - job.created).total_seconds()))
        waits = [each.total_seconds() for each in (decision.requeue_after, wait) if each is not None]
        if waits or not done:
            self._queue.add_after(key, min([*waits, *([] if done else [_REFUSED_SECONDS])]))

    def _observe(self, key: Key) -> Observed | None:
        observed = self._cache.observe(key)
        if observed is None:
            return None
        refusals = tuple(self._refusals.get(key, {}).values())
        observed = replace(observed, refusals=refusals, progress=self._progress.get(key))
        if reading := self._reports.get(key):
            observed = replace(observed, report=reading.report, report_digest=reading.digest, report_of=reading.source)
        return observed

    def _forget(self, key: Key) -> None:
        self._queue.forget(key)
        self._refusals.pop(key, None)
        self._reports.pop(key, None)
        self._progress.pop(key, None)
        self._written_at.pop(key, None)
        self._unwritable.pop(key, None)

    async def _refresh(self, key: Key) -> None:
        """Read the job itself into the cache, without waiting for the watch."""
        try:
            self._cache.put(JOBS, await self._client.get(JOBS, key.namespace, key.name))
        except NotFound:
            if job := self._cache.jobs.get(key, key.name):
                self._cache.forget(JOBS, key, key.name, job.uid)
        except ApiError as error:
            _log.warning("job not read: %s", error)

    async def _tell_unwritable(self, key: Key, error: OldDefinition) -> None:
        """By an event, once: the status, where it belongs, is what cannot be written."""
        observed = self._cache.observe(key)
        if observed is not None and key not in self._unwritable:
            self._unwritable[key] = error.message
            await self._recorder.post(observed.job, Event("Warning", error.reason, error.message))

    def _count_wait(self, key: Key, job: Job, status: TrainingJobStatus) -> timedelta | None:
        """How long a status waits in which only counts of pods are new: many pods that start are not a write each."""
        if status == job.status or _without_counts(status) != _without_counts(job.status):
            return None
        left = self._written_at.get(key, 0.0) + self._limits.count_interval_seconds - time.monotonic()
        return timedelta(seconds=left) if left > 0 else None

    async def _write_status(self, key: Key, job: Job, version: int, status: TrainingJobStatus, now: datetime) -> bool:
        """Apply the status if it says anything new. Conflict where the job is not at `version` any more."""
        wanted = status.dump()
        if wanted == job.status.dump():
            return False
        self._cache.put(JOBS, await self._client.apply_status(key.namespace, key.name, job.uid, version, wanted))
        self._written_at[key] = time.monotonic()
        metrics.status_written(job.created, job.status, status, now)
        return True

    async def _act(self, key: Key, job: Job, actions: Iterable[Action], now: datetime) -> bool:
        """Do the actions, each group of a kind in parallel and after the group before it. False where one was refused.

        Raises the first other error, once all of its group have ended: nothing runs on behind a failed reconcile.
        """
        gate = asyncio.Semaphore(self._limits.parallel_actions)

        async def perform(action: Action) -> bool:
            async with gate:
                return await self._perform(key, job, action, now)

        for kind, group in itertools.groupby(actions, key=type):
            results = await asyncio.gather(*map(perform, group), return_exceptions=True)
            if failures := [result for result in results if isinstance(result, BaseException)]:
                raise failures[0]
            if not all(results) and kind is not CreateConfigMap:  # nothing that follows needs a config map
                return False
        return True

    async def _perform(self, key: Key, job: Job, action: Action, now: datetime) -> bool:
        label = f"{type(action).__name__} {getattr(action, 'name', '')}".strip()
        refusals = self._refusals.setdefault(key, {})
        last = refusals.get(label)
        if last and last.at and (now - last.at).total_seconds() < _REFUSED_SECONDS:
            return False  # whatever is decided, a server that refuses is not asked in a loop
        try:
            reading = await self._actor.perform(job, action, now)
        except Rejected as error:
            _log.warning("%s was refused: %s", label, error)
            refusals[label] = Refusal(label, error.message, error.permanent, error.reason, now)
            self._queue.add(key)  # news for the next decision
            return False
        refusals.pop(label, None)
        if isinstance(reading, Progress):
            self._progress[key] = reading
            self._queue.add(key)  # news for the next decision
        elif reading is not None:
            self._reports[key] = reading
            self._reports.move_to_end(key)
            if len(self._reports) > _REPORTS:
                self._reports.popitem(last=False)
            self._queue.add(key)  # news for the next decision
        return True


def _without_counts(status: TrainingJobStatus) -> TrainingJobStatus:
    return status.model_copy(update=dict.fromkeys(_COUNTS))


def _starts_training(observed: Observed, decision: Decision) -> bool:
    """Whether these are the first pods of the job that are not for profiling."""
    made = any(
        isinstance(action, CreatePod) and action.body["metadata"]["labels"].get(labels.ROLE) not in _PROFILING
        for action in decision.actions
    )
    return made and observed.job.status.attempt <= 1 and all(pod.role in _PROFILING for pod in observed.pods)
