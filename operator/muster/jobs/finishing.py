"""The end of a job: which pods go, when the job itself does, and what a suspended job keeps."""

from datetime import timedelta

from muster.api.job import CleanPodPolicy, Mode
from muster.api.status import ConditionType
from muster.jobs import counts, failures, peer
from muster.jobs.draft import Draft
from muster.jobs.model import DeleteJob, DeleteService
from muster.jobs.reasons import Reason, State


def deadline(draft: Draft) -> None:
    """activeDeadlineSeconds runs from the start, profile and waiting included. Suspension stops it, and resuming
    starts it anew.
    """
    limit = draft.spec.run_policy.active_deadline_seconds
    if limit is None or draft.status.start_time is None:
        return
    until = draft.status.start_time + timedelta(seconds=limit)
    if draft.now >= until:
        draft.fail(Reason.DEADLINE_EXCEEDED, f"the job was not done {limit} s after its start")
    else:
        draft.wake(until)


def suspend(draft: Draft) -> None:
    """No pods; the profile and the plan stay. A profiling pod that is done stays too: its report may not have been
    read yet.
    """
    draft.set(state=State.SUSPENDED, start_time=None, attempt_start_time=None, backoff_until=None, replaced_pods=[])
    draft.condition(ConditionType.SUSPENDED, "True", Reason.SUSPENDED, "spec.runPolicy.suspend is true")
    draft.condition(ConditionType.PODS_READY, "False", Reason.SUSPENDED)
    profiler = draft.children.profiler
    for pod in draft.children.own:
        if pod is not profiler or not failures.done(pod):
            draft.delete(pod)
    counts.clear(draft, keep_completed=False)


def resume(draft: Draft) -> None:
    """A job that was suspended begins its next attempt; one that never was notes its start."""
    if draft.holds(ConditionType.SUSPENDED):
        draft.condition(ConditionType.SUSPENDED, "False", Reason.RESUMED)
        if draft.status.attempt:
            draft.next_attempt()
    if draft.status.start_time is None:
        draft.set(start_time=draft.now)


def reopen(draft: Draft) -> bool:
    """A recommendation that its user now wants to be run."""
    if draft.reason(ConditionType.COMPLETE) != Reason.RECOMMENDED or draft.spec.mode != Mode.RUN:
        return False
    draft.condition(ConditionType.COMPLETE, "False", Reason.NOT_STARTED, "spec.mode is Run now")
    draft.set(start_time=draft.now, completion_time=None, state=State.PENDING)
    return True


def _settled(draft: Draft) -> bool:
    """Whether a pod whose training container has ended, but which still runs, does so because of a sidecar: it holds
    what it was given and has to go. Right after the end it may only be that the kubelet tells of the container before
    it tells of the pod; deleting it then would take its log away.
    """
    until = (draft.status.completion_time or draft.now) + draft.settings.settle
    if draft.now < until:
        draft.wake(until)
    return draft.now >= until


def clean(draft: Draft) -> None:
    """What a job that is over leaves behind, and for how long. Safe to be repeated, so also what is done after a death
    in between.
    """
    peer.tend(draft)
    policy, ttl = draft.spec.run_policy.clean_pod_policy, draft.spec.run_policy.ttl_seconds_after_finished
    if ttl is not None and draft.status.completion_time is not None:
        until = draft.status.completion_time + timedelta(seconds=ttl)
        if draft.now >= until:
            draft.actions.append(DeleteJob(draft.job.uid))
            return
        draft.wake(until)
    if policy == CleanPodPolicy.NONE:
        return
    for pod in draft.children.own:
        ended = failures.done(pod) or failures.failed(pod)
        if policy == CleanPodPolicy.ALL or not ended or (pod.phase in ("Pending", "Running") and _settled(draft)):
            draft.delete(pod)
    counts.clear(draft, keep_completed=True)
    if draft.job.name in draft.observed.services:
        draft.actions.append(DeleteService(draft.job.name))
