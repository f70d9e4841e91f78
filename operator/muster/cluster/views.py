"""From the API server's dicts, in which anything may be missing, to the small frozen views that deciding works on."""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import ValidationError

from muster.api import labels
from muster.api.inventory import Node
from muster.api.job import TrainingJobSpec
from muster.api.model import complaints
from muster.api.status import TrainingJobStatus
from muster.cluster.client import Object, quantity
from muster.jobs.model import Job, Pod, Role, Termination

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MESSAGE = 1024  # characters kept of a message that somebody else wrote
_TERMINATION = 4096  # bytes that Kubernetes allows a termination message, which may hold the profile's summary
_KEPT = ("namespace", "name", "uid", "generation", "creationTimestamp", "labels", "deletionTimestamp")
_QUICKLY = 1  # zlib's level: several times smaller, and a higher one is not worth its time
_BLOCKING_EFFECTS = {"NoSchedule", "NoExecute"}


@dataclass(frozen=True)
class Child:
    """A service or config map that carries the job's label."""

    uid: str
    owner_uid: str | None


@dataclass(frozen=True)
class Quota:
    """What a ResourceQuota leaves of its namespace's GPUs."""

    gpus_left: int


@dataclass(frozen=True, slots=True)
class PackedJob:
    """A TrainingJob as the cache keeps it: parsed, it takes many times the memory, and most jobs are finished."""

    uid: str
    data: bytes

    def unpack(self) -> Job:
        """The view that deciding works on."""
        return job_view(json.loads(zlib.decompress(self.data)))


def packed_job(raw: Object) -> PackedJob:
    """A TrainingJob, of which only what `job_view` reads is kept."""
    meta = {name: raw["metadata"][name] for name in _KEPT if name in raw["metadata"]}
    kept = {"metadata": meta, "spec": raw.get("spec"), "status": raw.get("status")}
    return PackedJob(meta["uid"], zlib.compress(json.dumps(kept, separators=(",", ":")).encode(), _QUICKLY))


def job_view(raw: Object) -> Job:
    """A TrainingJob."""
    meta = raw["metadata"]
    uid, generation = meta["uid"], int(meta.get("generation") or 0)
    spec, error = _spec(raw.get("spec") or {})
    return Job(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=uid,
        generation=generation,
        created=_time(meta.get("creationTimestamp")) or _EPOCH,
        spec=spec,
        status=_job_status(raw.get("status") or {}),
        labels=tuple(sorted((meta.get("labels") or {}).items())),
        spec_error=error,
        deleting="deletionTimestamp" in meta,
    )


def pod_view(raw: Object) -> Pod:
    """A pod with the job label."""
    meta, status = raw["metadata"], raw.get("status") or {}
    marks = meta.get("labels") or {}
    conditions = {each.get("type"): each for each in status.get("conditions") or []}
    name = training_container(raw)
    training = _named(status.get("containerStatuses"), name)
    state = training.get("state") or {}
    waiting, message = _waiting(status, state)
    scheduled, disrupted = conditions.get("PodScheduled") or {}, conditions.get("DisruptionTarget") or {}
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        owner_uid=owner_uid(raw),
        role=_role(marks.get(labels.ROLE)),
        index=_count(marks.get(labels.INDEX)),
        attempt=_count(marks.get(labels.ATTEMPT)),
        phase=status.get("phase") or "Pending",
        created=_time(meta.get("creationTimestamp")) or _EPOCH,
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        deleting="deletionTimestamp" in meta,
        node=(raw.get("spec") or {}).get("nodeName") or "",
        reason=status.get("reason") or "",
        message=(status.get("message") or _failed_init(status))[:_MESSAGE],
        waiting_reason=waiting,
        waiting_message=message[:_MESSAGE],
        unschedulable=(scheduled.get("message") or "")[:_MESSAGE] if scheduled.get("status") == "False" else "",
        disruption=disrupted.get("reason") or "" if disrupted.get("status") == "True" else "",
        termination=_termination(state.get("terminated")),
        started=_time(status.get("startTime")),
        gone_by=_time(meta.get("deletionTimestamp")),
    )


def child_view(raw: Object) -> Child:
    """A service or config map."""
    return Child(raw["metadata"]["uid"], owner_uid(raw))


def node_view(raw: Object) -> Node | None:
    """What a node can give to a pod that tolerates nothing but GPUs; None where it takes none, or is not ready."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    taints = spec.get("taints") or []
    if spec.get("unschedulable") or any(
        taint.get("effect") in _BLOCKING_EFFECTS and taint.get("key") != labels.GPU_RESOURCE for taint in taints
    ):
        return None
    ready = _named(status.get("conditions"), "Ready", field="type").get("status", "True")
    if ready != "True":
        return None
    room = status.get("allocatable") or {}
    return Node(
        name=raw["metadata"]["name"],
        gpus=int(quantity(room.get(labels.GPU_RESOURCE, 0))),
        cpu_millicores=int(quantity(room.get("cpu", 0)) * 1000),
        memory_bytes=int(quantity(room.get("memory", 0))),
    )


def quota_view(raw: Object) -> Quota | None:
    """A ResourceQuota; None where it does not bound GPUs."""
    status = raw.get("status") or {}
    hard = status.get("hard") or (raw.get("spec") or {}).get("hard") or {}
    used = status.get("used") or {}
    left = [
        int(quantity(hard[name]) - quantity(used.get(name, 0)))
        for name in (f"requests.{labels.GPU_RESOURCE}", f"limits.{labels.GPU_RESOURCE}")
        if name in hard
    ]
    return Quota(max(0, min(left))) if left else None


def owner_uid(raw: Object) -> str | None:
    """The uid of the TrainingJob that controls the object."""
    for owner in raw["metadata"].get("ownerReferences") or []:
        if owner.get("controller") and owner.get("kind") == labels.KIND:
            return cast("str", owner["uid"])
    return None


def training_container(raw: Object) -> str:
    """The name of a pod's training container: `train`, or else its first."""
    names = [str(each.get("name")) for each in (raw.get("spec") or {}).get("containers") or []]
    return labels.TRAINING_CONTAINER if labels.TRAINING_CONTAINER in names or not names else names[0]


def _spec(raw: Object) -> tuple[TrainingJobSpec | None, str | None]:
    try:
        return TrainingJobSpec.model_validate(raw), None
    except ValidationError as error:
        return None, complaints(error, at="spec")[:_MESSAGE]
    except Exception as error:  # noqa: BLE001 - a hostile spec must become a condition, whatever it provokes
        return None, f"spec: {error}"[:_MESSAGE]


def _job_status(raw: Object) -> TrainingJobStatus:
    try:
        return TrainingJobStatus.model_validate(raw)
    except ValidationError:  # written by hand or by another version: what it said is lost, what the pods say is not
        return TrainingJobStatus()


def _waiting(status: Object, state: Object) -> tuple[str, str]:
    """Why the pod's containers wait: an init container's reason goes before that of the training container."""
    for each in status.get("initContainerStatuses") or []:
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing"):
            return waiting["reason"], waiting.get("message") or ""
    waiting = state.get("waiting") or {}
    return waiting.get("reason") or "", waiting.get("message") or ""


def _failed_init(status: Object) -> str:
    for each in status.get("initContainerStatuses") or []:
        ended = (each.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            why = ended.get("message") or ended.get("reason") or ""
            return f"init container {each.get('name')} ended with exit code {ended['exitCode']}: {why}"
    return ""


def _termination(raw: Object | None) -> Termination | None:
    if not raw:
        return None
    return Termination(
        exit_code=int(raw.get("exitCode") or 0),
        reason=raw.get("reason") or "",
        message=(raw.get("message") or "")[:_TERMINATION],
        finished=_time(raw.get("finishedAt")),
    )


def _named(items: Iterable[Object] | None, name: str, field: str = "name") -> Object:
    return next((each for each in items or () if each.get(field) == name), {})


def _role(text: Any) -> Role | None:
    try:
        return Role(text)
    except ValueError:
        return None


def _count(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
