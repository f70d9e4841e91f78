"""Posts events on jobs: one sentence is one Event, however often it is said. kopf's recorder works only in handlers."""

import hashlib
import logging
from collections import OrderedDict
from datetime import UTC, datetime

from muster.api import labels
from muster.cluster.client import EVENTS, Client, Object
from muster.cluster.errors import ApiError, Conflict, NotFound
from muster.jobs.model import Event, Job

_log = logging.getLogger(__name__)
_REMEMBERED = 4096  # sentences
_NOTE = 1024  # characters that events.k8s.io/v1 allows


class Recorder:
    """An event's name follows from what it says: a repeat, also by a later operator, counts up the same Event."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self._identity = identity
        self._said: OrderedDict[str, int] = OrderedDict()

    async def post(self, job: Job, event: Event) -> None:
        """Best effort: a lost event is logged, and holds up nothing."""
        name = _name(job, event)
        times = self._said[name] = self._said.pop(name, 0) + 1
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        try:
            if times > 1 and await self._repeat(job, name, times):
                return
            try:
                await self._client.create(EVENTS, job.namespace, self._body(job, event, name))
            except Conflict:
                await self._repeat(job, name, max(times, 2))
        except ApiError as error:
            _log.warning("event %s not posted: %s", event.reason, error)

    async def _repeat(self, job: Job, name: str, times: int) -> bool:
        series = {"count": times, "lastObservedTime": _now()}
        try:
            await self._client.merge(EVENTS, job.namespace, name, {"series": series})
        except NotFound:  # the server keeps events for an hour
            return False
        return True

    def _body(self, job: Job, event: Event, name: str) -> Object:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": job.namespace},
            "eventTime": _now(),
            "reportingController": labels.MANAGED_BY,
            "reportingInstance": self._identity[:128],
            "action": "Reconcile",
            "type": event.type,
            "reason": event.reason[:128],
            "note": event.message[:_NOTE],
            "regarding": {
                "apiVersion": labels.API_VERSION,
                "kind": labels.KIND,
                "namespace": job.namespace,
                "name": job.name,
                "uid": job.uid,
            },
        }


def _name(job: Job, event: Event) -> str:
    said = "\n".join((job.uid, event.type, event.reason, event.message))
    return f"{job.name}.{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
