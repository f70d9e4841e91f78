"""A queue's admission: Kueue takes plain pods as groups. A group's size is fixed, so there is one group an attempt; a
job that is not in a queue has none of this.
"""

from muster.jobs.members import Member
from muster.jobs.model import Job, Role

QUEUE = "kueue.x-k8s.io/queue-name"
GROUP = "kueue.x-k8s.io/pod-group-name"
GROUP_SIZE = "kueue.x-k8s.io/pod-group-total-count"


def membership(job: Job, member: Member, attempt: int, size: int | None) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of a pod. The profiling pod queues alone."""
    queue = dict(job.labels).get(QUEUE)
    if queue is None:
        return {}, {}
    if member.role == Role.PROFILER or size is None:
        return {QUEUE: queue}, {}
    # The uid tells apart the groups of two jobs that had the name one after the other.
    return {QUEUE: queue, GROUP: f"{job.name}-{job.uid[:8]}-{attempt}"[-63:].lstrip("-.")}, {GROUP_SIZE: str(size)}
