"""Carries out one action, and notes its outcome in the cache at once, before any event can tell of it."""

import logging
from dataclasses import dataclass
from datetime import datetime

from muster.api import labels, report_log
from muster.api.report import Report
from muster.api.report_log import ReportError
from muster.cluster.cache import Cache, Key
from muster.cluster.client import CONFIG_MAPS, JOBS, PODS, SERVICES, Client, Object, Resource
from muster.cluster.errors import ApiError, Conflict, NotFound, Rejected, Transient
from muster.cluster.views import owner_uid, pod_view, training_container
from muster.jobs.model import (
    Action,
    CreateConfigMap,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeleteService,
    Job,
    Progress,
    ReadProgress,
    ReadReport,
    ReportProblem,
)

_log = logging.getLogger(__name__)
# The report is the log's end. A node's log has a line for every 16 KiB of a longer one, and what is over the limit is
# cut from the end, so the limit is well above the longest report.
_REPORT_LINES = 1024
_REPORT_BYTES = 3 * report_log.MAX_REPORT_BYTES
_PROGRESS_LINES = 100
_PROGRESS_BYTES = 1 << 20
_PROGRESS_LENGTH = 200
PROGRESS_MARK = "muster-profile: "
"""What the profiler's lines about itself begin with, in a log that is otherwise the script's."""
REPORT_KEY = "report.json"
"""Where a config map holds a report."""


@dataclass(frozen=True)
class Reading:
    """What a ReadReport brought."""

    source: str  # the uid of the pod, or the name of the config map
    report: Report | ReportProblem
    digest: str = ""


class Actor:
    """Acts on one cluster. Raises ApiErrors; Rejected is the refusal of this very action."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache

    async def look(self, job: Job) -> bool:
        """List the job's pods anew; returns whether the cache was wrong about them.

        A restart ends pods that run: it must not rest on a cache that lags behind, as that of a second operator may,
        nor on a listing from before the version of the job that asks for it. Transient: the answer was such a one.
        """
        key, listed = Key(job.namespace, job.name), 0
        found: list[Object] = []
        async for items, version in self._client.pages(PODS, job.namespace, selector=f"{labels.JOB}={job.name}"):
            found, listed = found + items, version
        if listed < (known := self._cache.jobs.version(key, job.name)):
            raise Transient(f"the pods of {job.name} were answered as of {listed}, and the job is at {known} already")
        before = self._cache.pods.group(key)
        self._cache.put_pods(key, found, listed)
        return self._cache.pods.group(key) != before

    async def perform(self, job: Job, action: Action, now: datetime) -> Reading | Progress | None:
        """Do one action of a decision for `job`. Returns what an action that reads has brought."""
        match action:
            case CreatePod():
                await self._create(PODS, job, action.name, action.body)
            case CreateService():
                await self._create(SERVICES, job, action.name, action.body)
            case CreateConfigMap():
                await self._create(CONFIG_MAPS, job, action.name, action.body)
            case DeletePod():
                await self._delete_pod(job, action)
            case DeleteService():
                await self._delete_service(job, action.name)
            case DeleteJob():
                await self._delete_job(job, action.uid)
            case ReadReport():
                return await self._read(job, action, now)
            case ReadProgress():
                return await self._progress(job, action, now)
        return None

    async def _create(self, resource: Resource, job: Job, name: str, body: Object) -> None:
        try:
            self._cache.put(resource, await self._client.create(resource, job.namespace, body))
            _log.info("created %s %s", resource.singular, name)
        except Conflict:
            # An earlier life of this operator, or another replica, was here first; or the name is somebody else's.
            existing = await self._client.get(resource, job.namespace, name)
            if owner_uid(existing) != job.uid:
                owner = "a TrainingJob of the same name that is gone" if owner_uid(existing) else "somebody else"
                message = (
                    f"{resource.singular} {name} exists already and belongs to {owner}; delete it or rename the job"
                )
                raise Rejected(message, status=409, reason="AlreadyExists") from None
            self._cache.put(resource, existing)

    async def _delete_pod(self, job: Job, action: DeletePod) -> None:
        left = await self._delete(PODS, job.namespace, action.name, action.uid, action.grace_seconds)
        if left is not None and left["metadata"].get("deletionGracePeriodSeconds"):  # a kubelet ends it first
            self._cache.put(PODS, left)
        else:
            self._cache.forget(PODS, Key(job.namespace, job.name), action.name, action.uid)

    async def _delete_service(self, job: Job, name: str) -> None:
        key = Key(job.namespace, job.name)
        service = self._cache.services.get(key, name)
        if service is not None and service.owner_uid == job.uid:
            await self._delete(SERVICES, job.namespace, name, service.uid)
            self._cache.forget(SERVICES, key, name, service.uid)

    async def _delete_job(self, job: Job, uid: str) -> None:
        await self._delete(JOBS, job.namespace, job.name, uid)
        self._cache.forget(JOBS, Key(job.namespace, job.name), job.name, uid)

    async def _delete(
        self, resource: Resource, namespace: str, name: str, uid: str, grace_seconds: int | None = None
    ) -> Object | None:
        """Delete the object of this uid; returns what is left of it, None where it is gone."""
        try:
            left = await self._client.delete(resource, namespace, name, uid=uid, grace_seconds=grace_seconds)
        except NotFound:
            return None
        except Conflict:  # another object has the name by now, or this one was changed at the same moment
            existing = await self._get(resource, namespace, name)
            if existing is not None and existing["metadata"]["uid"] == uid:
                raise
            return None
        _log.info("deleted %s %s", resource.singular, name)
        return left if left.get("kind") != "Status" else None

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, namespace, name)
        except NotFound:
            return None

    async def _read(self, job: Job, action: ReadReport, now: datetime) -> Reading:
        source = action.config_map or ""
        try:
            if action.pod:
                raw = await self._client.get(PODS, job.namespace, action.pod)
                self._not_from_the_past(job, raw)
                source = raw["metadata"]["uid"]
                report, digest = await self._of_pod(raw)
            else:
                report, digest = await self._of_config_map(job, source)
        except (ReportError, NotFound, Rejected) as error:
            return Reading(source, ReportProblem(error.message, now))
        return Reading(source, report, digest)

    def _not_from_the_past(self, job: Job, pod: Object) -> None:
        """Transient where the answer is older than what is known: one from before its end has no last message."""
        name, version = pod["metadata"]["name"], int(pod["metadata"]["resourceVersion"])
        if version < (known := self._cache.pods.version(Key(job.namespace, job.name), name)):
            raise Transient(f"pod {name} was answered as of {version}, and is at {known} already")

    async def _progress(self, job: Job, action: ReadProgress, now: datetime) -> Progress:
        """Nothing said, where that cannot be read: it is a help, and must not keep the job from going on."""
        try:
            raw = await self._client.get(PODS, job.namespace, action.pod)
            log = await self._client.log(
                job.namespace,
                action.pod,
                training_container(raw),
                tail_lines=_PROGRESS_LINES,
                limit_bytes=_PROGRESS_BYTES,
            )
        except ApiError as error:
            _log.info("no word of %s: %s", action.pod, error)
            return Progress(action.uid, "", now)
        said = [line.removeprefix(PROGRESS_MARK) for line in log.splitlines() if line.startswith(PROGRESS_MARK)]
        text = "".join(filter(str.isprintable, said[-1] if said else ""))[:_PROGRESS_LENGTH]
        return Progress(action.uid, text, now)

    async def _of_pod(self, raw: Object) -> tuple[Report, str]:
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        termination = pod_view(raw).termination
        try:
            log = await self._client.log(
                namespace, name, training_container(raw), tail_lines=_REPORT_LINES, limit_bytes=_REPORT_BYTES
            )
        except (NotFound, Rejected) as error:  # the node is gone, or took the log with it: the summary may be enough
            _log.warning("no log of %s, its termination message has to do: %s", name, error)
            log = ""
        return report_log.read(log, termination.message if termination else "")

    async def _of_config_map(self, job: Job, name: str) -> tuple[Report, str]:
        raw = await self._client.get(CONFIG_MAPS, job.namespace, name)
        text = (raw.get("data") or {}).get(REPORT_KEY)
        if text is None:
            raise ReportError(f"config map {name} has no key {REPORT_KEY}")
        return report_log.parse(text), report_log.digest(text)
