"""An attempt: the service, the pods of the plan, their success, and what a failure among them leads to."""

from muster.api.job import SuccessPolicy
from muster.api.status import ConditionType
from muster.jobs import conditions, contracts, counts, failures, members, objects, pods
from muster.jobs.draft import Draft
from muster.jobs.failures import Failure, Verdict
from muster.jobs.members import Member, pod_name
from muster.jobs.model import CreatePod, CreateService, Pod, Role
from muster.jobs.objects import BadTemplate
from muster.jobs.reasons import Reason, State

_REMEMBERED = 64
"""Uids of replaced pods in the status: the last ones, since a cache that lags may still show a pod that is gone."""
_REPLACED_AT_ONCE = 32
"""More failures at once than these start the attempt as a whole anew."""


def success(draft: Draft) -> bool:
    """Completes the job where its success policy is satisfied. Servers, evaluators and sidecars do not decide."""
    if draft.status.plan is None or draft.status.attempt == 0:
        return False
    done = counts.completed(draft)
    workers = [member for member in members.of(draft.spec, draft.status.plan) if member.role == Role.WORKER]
    chief = [Member(Role.CHIEF, 0)] if draft.spec.chief else []
    needed = [*chief, *workers] if draft.spec.success_policy == SuccessPolicy.ALL_WORKERS else (chief or workers[:1])
    if not done.issuperset(needed):
        return False
    counts.update(draft)
    who = "every worker" if len(needed) > 1 else pod_name(draft.job.name, needed[0])
    draft.complete(Reason.SUCCEEDED, f"{who} is done")
    return True


def step(draft: Draft) -> None:
    """One look at the present attempt, whose plan stands."""
    if draft.status.attempt == 0:
        draft.set(attempt=1)
    planned = members.of(draft.spec, draft.plan)
    done = counts.completed(draft)
    counts.update(draft)
    if _failures(draft, planned, done):
        return
    if draft.children.old:
        _end_old(draft)
        return
    if _missing(draft, planned, done):
        return
    _report_progress(draft, planned, done)


def _failures(draft: Draft, planned: tuple[Member, ...], done: frozenset[Member]) -> bool:
    """Whether a failure has ended the attempt, or the job."""
    alone = contracts.replaceable(draft.spec.framework)
    remembered = draft.status.replaced_pods
    found: list[tuple[Member, Failure]] = []
    for member in planned:
        pod = draft.children.current.get(member)
        failure = None if member in done else _judge(draft, member, pod)
        if failure is not None and not (pod and pod.uid in remembered):
            found.append((member, failure))
    if not found:
        return False
    if all(member.role in alone for member, _ in found) and len(found) <= _REPLACED_AT_ONCE:
        return _replace(draft, found)
    _start_over(draft, [failure for _, failure in found])
    return True


def _judge(draft: Draft, member: Member, pod: Pod | None) -> Failure | None:
    if pod is not None and failures.failed(pod):
        return failures.failure(pod)
    begun = draft.status.attempt_start_time is not None
    if begun and (pod is None or pod.deleting):
        # One that may be replaced alone is simply made again.
        replaceable = member.role in contracts.replaceable(draft.spec.framework)
        return None if replaceable else failures.lost(pod_name(draft.job.name, member), pod)
    return _cannot_start(draft, pod) if pod is not None else None


def _cannot_start(draft: Draft, pod: Pod) -> Failure | None:
    blocked = failures.blocked(pod)
    if blocked is None or not (blocked.expires or blocked.hopeless):
        return None
    until = (pod.started or pod.created) + draft.settings.start_timeout
    if blocked.hopeless or draft.now >= until:
        return Failure(Verdict.PERMANENT, Reason.CANNOT_START, blocked.message)
    draft.wake(until)
    return None


def _cause(found: list[Failure]) -> Failure:
    """The failure that explains the others: what cannot be mended, else a disruption (the others fell with it), else
    the first.
    """
    order = [Verdict.PERMANENT, Verdict.DISRUPTION, Verdict.COUNTED]
    cause = min(found, key=lambda failure: order.index(failure.verdict))
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Failure(cause.verdict, cause.reason, cause.message + others)


def _start_over(draft: Draft, found: list[Failure]) -> None:
    """Ends the attempt. The count and the next attempt's number are written before the first pod is deleted: it is
    counted once.
    """
    cause = _cause(found)
    if not draft.restart(cause):
        return
    draft.next_attempt()
    counts.clear(draft, keep_completed=False)
    draft.condition(
        ConditionType.PODS_READY, "False", cause.reason, f"{cause.message}; attempt {draft.status.attempt} follows"
    )
    for pod in draft.children.old:
        draft.delete(pod)
    draft.waits_for_backoff()


def _replace(draft: Draft, found: list[tuple[Member, Failure]]) -> bool:
    """Replaces single pods. Their uids are remembered, so that none is counted twice."""
    cause = _cause([failure for _, failure in found])
    if not draft.restart(cause):
        return True
    failed = [draft.children.current[member] for member, _ in found if member in draft.children.current]
    replaced = [*draft.status.replaced_pods, *(pod.uid for pod in failed)]
    draft.set(replaced_pods=replaced[-_REMEMBERED:])
    draft.condition(ConditionType.PODS_READY, "False", cause.reason, f"{cause.message}; it alone is made again")
    for pod in failed:
        draft.delete(pod)
    draft.waits_for_backoff()
    return True


def _end_old(draft: Draft) -> None:
    """The whole of an earlier attempt is gone before the next begins: its pods have the same names, and may hold the
    same checkpoint.
    """
    old = [pod.name for pod in draft.children.old]
    if draft.waits_for_refusal(ConditionType.PODS_READY, *old):
        return
    for pod in draft.children.old:
        draft.delete(pod)
    _keep_waiting(draft, Reason.TERMINATING, f"{len(old)} pods of an earlier attempt are not gone yet")
    said = conditions.get(draft.status, ConditionType.PODS_READY)
    if said and (stuck := draft.stuck(draft.children.old)) and stuck not in said.message:
        draft.condition(ConditionType.PODS_READY, "False", said.reason, f"{said.message}; {stuck}")
    draft.waits_for_backoff()


def _keep_waiting(draft: Draft, reason: Reason, message: str) -> None:
    """Between attempts the condition goes on telling what ended the last one."""
    if draft.status.state != State.RESTARTING:
        draft.condition(ConditionType.PODS_READY, "False", reason, message)
        draft.set(state=State.STARTING)


def _missing(draft: Draft, planned: tuple[Member, ...], done: frozenset[Member]) -> bool:
    """Makes what is missing. Whether something keeps it from being made."""
    going = [
        pod
        for pod in draft.children.current.values()
        if pod.uid in draft.status.replaced_pods or (pod.deleting and not failures.done(pod))
    ]
    for pod in going:
        draft.delete(pod)
    missing = [member for member in planned if member not in draft.children.current and member not in done]
    if not missing:
        if going:
            _keep_waiting(draft, Reason.TERMINATING, f"{going[0].name} is not gone yet; another follows")
        return bool(going)
    if _name_taken(draft, missing):
        return True
    if draft.waits_for_backoff():
        _keep_waiting(draft, Reason.BACKOFF, "the next attempt waits for its time")
        return True
    names = [draft.job.name, *(pod_name(draft.job.name, member) for member in missing)]
    if draft.waits_for_refusal(ConditionType.PODS_READY, *names) or _too_small(draft, planned):
        return True
    if draft.job.name not in draft.observed.services:
        draft.actions.append(CreateService(draft.job.name, objects.service(draft.job)))
    cluster = members.cluster(draft.job, draft.spec, draft.plan, draft.settings)
    try:
        for member in missing:
            body = pods.pod(draft.job, draft.spec, draft.plan, draft.status.attempt, member, cluster)
            draft.actions.append(CreatePod(body["metadata"]["name"], body))
    except BadTemplate as problem:
        draft.fail(Reason.INVALID_SPEC, str(problem))
        return True
    draft.set(backoff_until=None)
    return draft.refused(*names) is not None


def _name_taken(draft: Draft, missing: list[Member]) -> bool:
    named = [draft.children.foreign.get(pod_name(draft.job.name, member)) for member in missing]
    taken = [pod for pod in named if pod is not None]
    if not taken:
        return False
    strangers = [pod.name for pod in taken if not pod.deleting]
    if strangers:
        names = ", ".join(strangers[:5])
        message = f"pods with this job's names belong to somebody else: {names}; delete them, or rename the job"
        draft.condition(ConditionType.PODS_READY, "False", Reason.NAME_TAKEN, message)
        draft.set(state=State.WAITING)
    else:
        _keep_waiting(draft, Reason.TERMINATING, f"{len(taken)} pods of an earlier job of this name are not gone yet")
    return True


def _too_small(draft: Draft, planned: tuple[Member, ...]) -> bool:
    """No pods that would be Pending for ever: they would only hold what others could use."""
    if draft.children.current:
        return False  # It was large enough when the attempt began.
    needs: dict[str, tuple[int, int]] = {}
    for role in {member.role for member in planned}:
        gpus = 0 if role == Role.SCHEDULER else members.template(draft.spec, role).gpus
        needs[f"each {role} pod"] = (sum(member.role == role for member in planned), gpus)
    lack = draft.lacks(needs)
    if lack:
        draft.condition(ConditionType.PODS_READY, "False", Reason.INSUFFICIENT_RESOURCES, lack)
        draft.set(state=State.WAITING)
        draft.wake(draft.now + draft.settings.resize_retry)
    return bool(lack)


def _report_progress(draft: Draft, planned: tuple[Member, ...], done: frozenset[Member]) -> None:
    current = draft.children.current
    waited_for = [member for member in planned if member not in done]
    whole = all((pod := current.get(member)) and not pod.deleting for member in waited_for)
    if draft.status.attempt_start_time is None and whole:
        draft.set(attempt_start_time=draft.now)
    if all((pod := current.get(member)) and pod.ready and not pod.deleting for member in waited_for):
        draft.condition(ConditionType.PODS_READY, "True", Reason.PODS_READY)
        draft.set(state=State.RUNNING)
        return
    blocked = [found for member in waited_for if (pod := current.get(member)) and (found := failures.blocked(pod))]
    if blocked:
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        draft.condition(ConditionType.PODS_READY, "False", blocked[0].reason, blocked[0].message + more)
        draft.set(state=State.WAITING)
    else:
        draft.condition(ConditionType.PODS_READY, "False", Reason.PODS_STARTING)
        draft.set(state=State.STARTING)
