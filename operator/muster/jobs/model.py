"""The vocabulary between deciding and acting: what was seen of a job, and what is to be done about it.

`decide(observed: Observed, now: datetime) -> Decision` is all that the controller (with pods) and `muster run` (with
processes) call.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from muster.api.inventory import Inventory
from muster.api.job import TrainingJobSpec
from muster.api.report import Report
from muster.api.status import TrainingJobStatus


class Role(StrEnum):
    """What a pod is in its job; the value of the role label and of MUSTER_ROLE."""

    PROFILER = "profiler"
    PEER = "peer"
    SCHEDULER = "scheduler"
    SERVER = "server"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


@dataclass(frozen=True)
class Job:
    """The cached view of a TrainingJob. `spec` is None where it breaks the models; then `spec_error` says why."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: datetime
    spec: TrainingJobSpec | None
    status: TrainingJobStatus
    labels: tuple[tuple[str, str], ...] = ()
    spec_error: str | None = None
    deleting: bool = False


@dataclass(frozen=True)
class Termination:
    """How the training container ended. `message` is its termination message, untrusted."""

    exit_code: int
    reason: str = ""
    message: str = ""
    finished: datetime | None = None


@dataclass(frozen=True)
class Pod:
    """The cached view of a pod with the job label: only what deciding needs.

    `waiting_reason` is the training (or an init) container's, for example ImagePullBackOff; `reason` the pod's own,
    for example Evicted; `disruption` the reason of a true DisruptionTarget condition; `unschedulable` the message of a
    false PodScheduled condition; `started` is status.startTime: when its node took it; `gone_by` is
    metadata.deletionTimestamp: when a deleted pod's grace ends.
    """

    name: str
    uid: str
    owner_uid: str | None
    role: Role | None
    index: int
    attempt: int
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
    created: datetime
    ready: bool = False
    deleting: bool = False
    node: str = ""
    reason: str = ""
    message: str = ""
    waiting_reason: str = ""
    waiting_message: str = ""
    unschedulable: str = ""
    disruption: str = ""
    termination: Termination | None = None
    started: datetime | None = None
    gone_by: datetime | None = None


@dataclass(frozen=True)
class ReportProblem:
    """Why no report could be read, and when that was tried."""

    message: str
    at: datetime | None = None


@dataclass(frozen=True)
class Progress:
    """What the profiler in the pod of uid `source` last said of itself, as of `at`; untrusted, and empty at first."""

    source: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Refusal:
    """The API server's (or a quota's, or a webhook's) refusal of an earlier action, until it succeeds.

    `permanent`: the same request will be refused again (422); otherwise it is worth trying later (quota, webhook away,
    permission lost).
    """

    action: str
    message: str
    permanent: bool
    reason: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class Observed:
    """A snapshot of one job. `pods` holds every pod that carries the job's name, foreign ones too (their owner_uid
    differs).

    `report` is what a `ReadReport` of an earlier pass brought, None where none was asked for; `report_of` says where
    it was read: the uid of the pod, or the name of the config map. A report of another pod than the present one is
    ignored. `progress` likewise is what a `ReadProgress` brought.
    """

    job: Job
    pods: tuple[Pod, ...] = ()
    services: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    report: Report | ReportProblem | None = None
    report_digest: str = ""
    report_of: str = ""
    progress: Progress | None = None
    inventory: Inventory | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class CreatePod:
    """`body` is the whole pod. An existing pod of the same owner is success; of another owner, a Refusal."""

    name: str
    body: dict[str, Any]


@dataclass(frozen=True)
class CreateService:
    """The headless service of the job's pods."""

    name: str
    body: dict[str, Any]


@dataclass(frozen=True)
class CreateConfigMap:
    """Keeps the report as long as the job lives."""

    name: str
    body: dict[str, Any]


@dataclass(frozen=True)
class DeletePod:
    """Deletes the pod with this uid and no other of its name."""

    name: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True)
class DeleteService:
    """Of a finished job."""

    name: str


@dataclass(frozen=True)
class DeleteJob:
    """When its time to live is over; in the background, with the uid as precondition."""

    uid: str


@dataclass(frozen=True)
class ReadReport:
    """Bring the profile report into the next snapshot: from the log of `pod` (falling back on its termination
    message), else from `config_map`.
    """

    pod: str | None = None
    config_map: str | None = None


@dataclass(frozen=True)
class ReadProgress:
    """Bring what the profiler in the pod of this uid last said of itself into the next snapshot."""

    pod: str
    uid: str


Action = CreatePod | CreateService | CreateConfigMap | DeletePod | DeleteService | DeleteJob | ReadReport | ReadProgress


@dataclass(frozen=True)
class Event:
    """To be posted on the job, once the status that it speaks of is written."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Decision:
    """What to do, in this order: write `status` if it differs and `status_first`; `actions`, each group in parallel;
    write `status` if it differs; `events`; look again after `requeue_after`, or on the next change.
    """

    status: TrainingJobStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None
    status_first: bool = field(default=True)
