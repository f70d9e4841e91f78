"""A whole job on one machine: the operator's own `decide`, plan and contracts, with processes in place of pods."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from muster.api.status import TrainingJobStatus
from muster.jobs import conditions
from muster.jobs.model import Decision, Job, Observed
from muster.local.machine import Listener, Machine

__all__ = ["Listener", "Machine", "run"]

_LOOK_SECONDS = 1.0  # the longest time between two looks: deadlines and graces of processes are kept in between
_AGAIN_SECONDS = 0.05

Decide = Callable[[Observed, datetime], Decision]


def run(
    job: Job, machine: Machine, listener: Listener, decide: Callable[[Observed, datetime], Decision]
) -> TrainingJobStatus:
    """Bring the job to its end, and every process with it, whatever interrupts.

    Returns the last status: Complete, Failed, or neither where nothing is left to be done (a suspended job).
    """
    try:
        while True:
            observed = machine.observe(job)
            decision = decide(observed, datetime.now(UTC))
            before, job = job.status, replace(job, status=decision.status)
            for event in decision.events:
                listener.event(event)
            if job.status.plan is not None and job.status.plan != before.plan:
                listener.planned(job)
            for action in decision.actions:
                machine.act(job, action)
            if conditions.is_over(job.status):
                return job.status
            # By what was decided on: a process that has ended since is news for the next decision.
            asleep = not decision.actions and decision.requeue_after is None and job.status == before
            if asleep and all(pod.termination for pod in observed.pods):
                return job.status
            machine.wait(_pause(decision))
    finally:
        machine.stop()


def _pause(decision: Decision) -> float:
    if decision.actions:
        return _AGAIN_SECONDS
    due = decision.requeue_after if decision.requeue_after is not None else timedelta(seconds=_LOOK_SECONDS)
    return min(max(due.total_seconds(), _AGAIN_SECONDS), _LOOK_SECONDS)
