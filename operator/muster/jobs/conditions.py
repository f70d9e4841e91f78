"""Setting conditions as Kubernetes means them: the transition time moves only with the status; each carries the
generation it speaks of.
"""

from datetime import datetime

from muster.api.status import Condition, ConditionType, TrainingJobStatus
from muster.jobs.model import Event
from muster.jobs.reasons import WARNINGS, Reason

_QUIET = frozenset(
    {Reason.NOT_STARTED, Reason.NOT_SUSPENDED, Reason.PODS_STARTING, Reason.TERMINATING, Reason.JOB_FINISHED}
)
"""Reasons that are no news."""
_AT_FIRST_SIGHT = {
    ConditionType.PROFILED: ("Unknown", Reason.NOT_STARTED),
    ConditionType.SIZED: ("Unknown", Reason.NOT_STARTED),
    ConditionType.SUSPENDED: ("False", Reason.NOT_SUSPENDED),
    ConditionType.PODS_READY: ("False", Reason.NOT_STARTED),
    ConditionType.COMPLETE: ("False", Reason.NOT_STARTED),
    ConditionType.FAILED: ("False", Reason.NOT_STARTED),
}


def get(status: TrainingJobStatus, kind: ConditionType) -> Condition | None:
    """The condition of that type."""
    return next((condition for condition in status.conditions if condition.type == kind), None)


def is_true(status: TrainingJobStatus, kind: ConditionType) -> bool:
    """Whether the condition is there and True."""
    condition = get(status, kind)
    return condition is not None and condition.status == "True"


def is_over(status: TrainingJobStatus) -> bool:
    """Whether the job is Complete or Failed."""
    return is_true(status, ConditionType.COMPLETE) or is_true(status, ConditionType.FAILED)


def put(
    status: TrainingJobStatus,
    kind: ConditionType,
    value: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> TrainingJobStatus:
    """`status` with that condition."""
    old = get(status, kind)
    since = old.last_transition_time if old and old.status == value else now
    new = Condition.model_validate(
        {
            "type": kind.value,
            "status": value,
            "reason": str(reason),
            "message": message,
            "observed_generation": generation,
            "last_transition_time": since,
        }
    )
    kept = [condition for condition in status.conditions if condition.type != kind]
    order = list(ConditionType)
    conditions = sorted([*kept, new], key=lambda condition: order.index(ConditionType(condition.type)))
    return status.model_copy(update={"conditions": conditions})


def at_first_sight(status: TrainingJobStatus, generation: int, now: datetime) -> TrainingJobStatus:
    """`status` with every condition there, and all of them speaking of this generation."""
    for kind, (value, reason) in _AT_FIRST_SIGHT.items():
        old = get(status, kind)
        if old is None:
            status = put(status, kind, value, reason, "", generation, now)
        elif old.observed_generation != generation:
            status = put(status, kind, old.status, old.reason, old.message, generation, now)
    return status


def events(before: TrainingJobStatus, after: TrainingJobStatus) -> tuple[Event, ...]:
    """One event for each condition whose status or reason is new, and news."""
    news = []
    for condition in after.conditions:
        old = get(before, ConditionType(condition.type))
        if (old and (old.status, old.reason) == (condition.status, condition.reason)) or condition.reason in _QUIET:
            continue
        kind = "Warning" if condition.reason in WARNINGS or condition.type == ConditionType.FAILED else "Normal"
        news.append(Event(kind, condition.reason, condition.message))  # type: ignore[arg-type]
    return tuple(news)
