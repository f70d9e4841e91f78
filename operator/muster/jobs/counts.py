"""What the status says of each role: counts, and which members are done, even when their pods are gone."""

from muster.api.status import ReplicaStatus
from muster.jobs import failures, indexes, members
from muster.jobs.draft import Draft
from muster.jobs.members import Member
from muster.jobs.model import Role

_FIELDS = {
    Role.WORKER: "workers",
    Role.SERVER: "servers",
    Role.CHIEF: "chief",
    Role.EVALUATOR: "evaluator",
    Role.SCHEDULER: "scheduler",
}


def completed(draft: Draft) -> frozenset[Member]:
    """Members that are done in the present attempt: those of the status, and those that are seen to be."""
    noted = {
        Member(role, index)
        for role, name in _FIELDS.items()
        if (replicas := getattr(draft.status, name)) is not None
        for index in indexes.unpack(replicas.completed_indexes)
    }
    return frozenset(noted | {member for member, pod in draft.children.current.items() if failures.done(pod)})


def update(draft: Draft) -> None:
    """Sets every role's counts from the pods of the present attempt."""
    planned = members.of(draft.spec, draft.status.plan) if draft.status.plan else ()
    done = completed(draft)
    for role, name in _FIELDS.items():
        desired = sum(member.role == role for member in planned)
        if not desired:
            draft.set(**{name: ReplicaStatus() if role in (Role.WORKER, Role.SERVER) else None})
            continue
        pods = [pod for member, pod in draft.children.current.items() if member.role == role and member not in done]
        failed = sum(failures.failed(pod) for pod in pods)
        draft.set(
            **{
                name: ReplicaStatus(
                    desired=desired,
                    active=len(pods) - failed,
                    ready=sum(pod.ready and not failures.failed(pod) for pod in pods),
                    succeeded=sum(member.role == role for member in done),
                    failed=failed,
                    completed_indexes=indexes.pack(member.index for member in done if member.role == role),
                )
            }
        )


def clear(draft: Draft, *, keep_completed: bool) -> None:
    """No pod is left; with `keep_completed` it stays known which were done, for a job that is over."""
    for name in _FIELDS.values():
        replicas = getattr(draft.status, name)
        if replicas is not None:
            gone = {"active": 0, "ready": 0}
            forgotten = {} if keep_completed else {"succeeded": 0, "failed": 0, "completed_indexes": ""}
            draft.set(**{name: replicas.model_copy(update=gone | forgotten)})
