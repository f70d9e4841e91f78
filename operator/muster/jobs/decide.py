"""The one decision of Muster: from all that is known of a job to all that is to be done about it, as a function of
those alone.

The order is the policy. A job that is being deleted, or is somebody else's, is left alone; what is over stays over;
success comes before a deadline that passed while nobody looked; suspension before anything that makes pods.
"""

from datetime import datetime

from muster.api.job import Mode
from muster.api.labels import LONGEST_JOB_NAME, MANAGED_BY
from muster.api.status import ConditionType, TrainingJobStatus
from muster.jobs import children, conditions, finishing, profiling, reports, running
from muster.jobs.draft import Draft
from muster.jobs.model import Decision, Observed
from muster.jobs.reasons import Reason, State
from muster.jobs.settings import Settings


def decide(observed: Observed, now: datetime, settings: Settings = Settings()) -> Decision:  # noqa: B008 - frozen
    """What to do about a job, given all that was seen of it. `now` is in UTC.

    The status that results is stable: deciding again on the same, with that status, changes nothing.
    """
    job, now = observed.job, now.replace(microsecond=0)  # The status has whole seconds.
    if job.deleting or (job.spec is not None and job.spec.run_policy.managed_by != MANAGED_BY):
        return Decision(status=job.status)
    sorted_children = children.sort(observed, job.status, now, settings)
    if sorted_children.ahead:
        return Decision(status=job.status, requeue_after=settings.refusal_retry)
    status = conditions.at_first_sight(job.status, job.generation, now)
    status = status.model_copy(update={"observed_generation": job.generation, "state": status.state or State.PENDING})
    problem = job.spec_error if job.spec is None else _name_problem(job.name)
    if problem is not None or job.spec is None:
        return _invalid(observed, status, problem or "the spec cannot be read", now)
    draft = Draft(observed, now, settings, job.spec, sorted_children, status)
    _walk(draft)
    if draft.ended:
        finishing.clean(draft)
    return draft.decision()


def _walk(draft: Draft) -> None:
    if (draft.ended and not finishing.reopen(draft)) or running.success(draft):
        return
    if draft.spec.run_policy.suspend:
        finishing.suspend(draft)
        profiling.step(draft)  # What needs no pod goes on: a queue sees the job's true size.
        if not draft.ended:
            draft.set(state=State.SUSPENDED)
        return
    finishing.resume(draft)
    finishing.deadline(draft)
    if draft.ended or not profiling.step(draft):
        return
    if draft.spec.mode == Mode.RECOMMEND and draft.status.attempt == 0:
        draft.complete(Reason.RECOMMENDED, "spec.mode is Recommend: the plan is in the status")
    else:
        running.step(draft)
    if not draft.holds(ConditionType.FAILED):
        reports.keep(draft)  # Last: nothing else waits for it.


def _name_problem(name: str) -> str | None:
    if len(name) > LONGEST_JOB_NAME:
        return f"metadata.name has {len(name)} characters; pods named after it leave room for {LONGEST_JOB_NAME}"
    if not (name[:1].isalpha() and all(character.isalnum() or character == "-" for character in name)):
        return f"metadata.name {name!r} must begin with a letter and have no dots: services are named after it"
    return None


def _invalid(observed: Observed, status: TrainingJobStatus, problem: str, now: datetime) -> Decision:
    """A job that has not begun has failed. One that runs goes on with what it has, until its spec can be read again."""
    generation = observed.job.generation
    begun = status.attempt > 0 or status.profile is not None
    over = conditions.is_true(status, ConditionType.COMPLETE) or conditions.is_true(status, ConditionType.FAILED)
    if not over:
        status = conditions.put(
            status, ConditionType.FAILED, "False" if begun else "True", Reason.INVALID_SPEC, problem, generation, now
        )
    if not over and not begun:
        status = conditions.put(
            status, ConditionType.PODS_READY, "False", Reason.JOB_FINISHED, "", generation, now
        ).model_copy(update={"state": State.FAILED, "completion_time": now})
    return Decision(status=status, events=conditions.events(observed.job.status, status))
