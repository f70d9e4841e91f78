"""A job's pods, sorted into buckets once, before anything is decided."""

from dataclasses import dataclass
from datetime import datetime

from muster.api.status import TrainingJobStatus
from muster.jobs.members import Member, pod_name
from muster.jobs.model import Observed, Pod, Role
from muster.jobs.settings import Settings


@dataclass(frozen=True)
class Children:
    """`current` is the present attempt's, `old` of earlier ones, `foreign` (by name) somebody else's or an earlier
    job's.

    `peer` is the profiling pod's, whatever the try.

    `ahead`: there are pods of a later attempt than the status knows. The status that was read is stale, and nothing
    may be decided on it.
    """

    profiler: Pod | None
    current: dict[Member, Pod]
    old: tuple[Pod, ...]
    foreign: dict[str, Pod]
    ahead: bool
    peer: Pod | None = None

    @property
    def own(self) -> tuple[Pod, ...]:
        """Every pod of this job, but for the peer, which is gone when the profile is."""
        return (*((self.profiler,) if self.profiler else ()), *self.current.values(), *self.old)


def tries(status: TrainingJobStatus) -> int:
    """The number of the present try to profile: each restart was one of the two counts."""
    return 1 + status.restarts + status.disruptions


def sort(observed: Observed, status: TrainingJobStatus, now: datetime, settings: Settings) -> Children:
    """The buckets, with that status. A pod with the labels, but a name that Muster would not give, is in none of
    them.
    """
    job, profiler, current, old, foreign, ahead = observed.job, None, {}, [], {}, False
    peer: Pod | None = None
    for pod in observed.pods:
        if pod.owner_uid != job.uid:
            foreign[pod.name] = pod
            continue
        if pod.role is None or pod.name != pod_name(job.name, Member(pod.role, pod.index)):
            continue
        if pod.role == Role.PEER:
            peer = pod
        elif pod.role == Role.PROFILER:
            # A profile that is done keeps its pod, whose log is the report.
            if status.profile or pod.attempt >= tries(status):
                profiler = pod
            else:
                old.append(pod)
        elif pod.attempt == status.attempt:
            current[Member(pod.role, pod.index)] = pod
        elif pod.attempt < status.attempt or now - pod.created > settings.overdue:
            old.append(pod)
        else:
            ahead = True
    return Children(profiler, current, tuple(old), foreign, ahead, peer)
