"""Who takes part in an attempt: the one list from which pods, their environment, their success and their counts all
follow.
"""

from dataclasses import dataclass

from muster.api.job import Framework, PodTemplate, TrainingJobSpec
from muster.api.status import Plan
from muster.jobs.model import Job, Role
from muster.jobs.settings import Settings

LONGEST_NAME = 63
"""Of a pod: its name is also its host's name."""


@dataclass(frozen=True, order=True)
class Member:
    """One planned pod of an attempt, or process of this machine."""

    role: Role
    index: int


PROFILER = Member(Role.PROFILER, 0)
PEER = Member(Role.PEER, 0)


def pod_name(job: str, member: Member) -> str:
    """Deterministic, so that a pod can never be made twice."""
    return f"{job}-profiler" if member.role == Role.PROFILER else f"{job}-{member.role}-{member.index}"


def has_scheduler(spec: TrainingJobSpec) -> bool:
    """ps-lite's frameworks meet at a scheduler, which Muster makes."""
    return spec.framework in (Framework.MXNET, Framework.BYTEPS)


def of(spec: TrainingJobSpec, plan: Plan) -> tuple[Member, ...]:
    """Every member, those that others wait for first."""
    servers = plan.servers.value if spec.server else 0
    counts = {
        Role.SCHEDULER: int(has_scheduler(spec)),
        Role.SERVER: servers,
        Role.CHIEF: int(spec.chief is not None),
        Role.WORKER: plan.workers.value,
        Role.EVALUATOR: int(spec.evaluator is not None),
    }
    return tuple(Member(role, index) for role, count in counts.items() for index in range(count))


def template(spec: TrainingJobSpec, role: Role) -> PodTemplate:
    """The role's pod template. The scheduler's is the servers', or the workers' where there are none: the same image,
    and no GPUs.
    """
    own = {
        Role.SERVER: spec.server,
        Role.SCHEDULER: spec.server,
        Role.CHIEF: spec.chief,
        Role.EVALUATOR: spec.evaluator,
    }
    return (own.get(role) or spec.worker).template


@dataclass(frozen=True)
class Cluster:
    """Where an attempt's members are, as host:port in order of index: what every framework's environment is made from.

    `single` has one worker alone, as in the profiling pod; then no framework's rendezvous takes place.
    """

    workers: tuple[str, ...]
    servers: tuple[str, ...] = ()
    chief: str | None = None
    evaluator: str | None = None
    scheduler: str | None = None
    gpus_per_worker: int = 0

    @property
    def single(self) -> bool:
        """Whether one process-group member is all there is."""
        return len(self.workers) == 1 and not self.servers and not self.chief


def cluster(job: Job, spec: TrainingJobSpec, plan: Plan, settings: Settings) -> Cluster:
    """The addresses of an attempt's members."""
    hosts: dict[Role, list[str]] = {role: [] for role in Role}
    for member in of(spec, plan):
        hosts[member.role].append(settings.address(job.namespace, job.name, pod_name(job.name, member)))

    def only(role: Role) -> str | None:
        return hosts[role][0] if hosts[role] else None

    return Cluster(
        workers=tuple(hosts[Role.WORKER]),
        servers=tuple(hosts[Role.SERVER]),
        chief=only(Role.CHIEF),
        evaluator=only(Role.EVALUATOR),
        scheduler=only(Role.SCHEDULER),
        gpus_per_worker=spec.worker.template.gpus,
    )
