"""One decision while it is being made: what was observed, and the status, actions and wake-up times found so far."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from muster.api.job import TrainingJobSpec
from muster.api.status import ConditionType, Plan, TrainingJobStatus
from muster.jobs import children, conditions
from muster.jobs.children import Children
from muster.jobs.failures import Failure, refusals
from muster.jobs.model import Action, Decision, DeletePod, Job, Observed, Pod, Refusal
from muster.jobs.reasons import Reason, State
from muster.jobs.settings import Settings


@dataclass
class Draft:
    """Local to one call of `decide`: the only thing in this package that changes."""

    observed: Observed
    now: datetime
    settings: Settings
    spec: TrainingJobSpec
    children: Children
    status: TrainingJobStatus
    actions: list[Action] = field(default_factory=list)
    wakes: list[datetime] = field(default_factory=list)

    @property
    def job(self) -> Job:
        """The job that is decided on."""
        return self.observed.job

    @property
    def plan(self) -> Plan:
        """The plan, which stands."""
        if self.status.plan is None:
            raise RuntimeError("no plan stands")
        return self.status.plan

    def set(self, **fields: Any) -> None:
        """Changes fields of the status."""
        self.status = self.status.model_copy(update=fields)

    def condition(self, kind: ConditionType, value: str, reason: str, message: str = "") -> None:
        """Sets a condition of the status."""
        self.status = conditions.put(self.status, kind, value, reason, message, self.job.generation, self.now)

    def holds(self, kind: ConditionType) -> bool:
        """Whether the condition is True."""
        return conditions.is_true(self.status, kind)

    def reason(self, kind: ConditionType) -> str:
        """The condition's reason."""
        condition = conditions.get(self.status, kind)
        return condition.reason if condition else Reason.NOT_STARTED

    def next_attempt(self) -> None:
        """The pods that were the present attempt's are an earlier one's from here on."""
        self.set(attempt=self.status.attempt + 1, attempt_start_time=None, replaced_pods=[])
        self.children = children.sort(self.observed, self.status, self.now, self.settings)

    def refused(self, *names: str) -> Refusal | None:
        """The first refusal of an action on one of these objects."""
        return next((refusal for refusal in self.observed.refusals if refusal.action.split()[-1] in names), None)

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.holds(ConditionType.COMPLETE) or self.holds(ConditionType.FAILED)

    def wake(self, at: datetime) -> None:
        """Asks for another look at that time, if nothing happens before."""
        self.wakes.append(at)

    def waits_for_backoff(self) -> bool:
        """Whether it is too early to make pods."""
        until = self.status.backoff_until
        if until is None or self.now >= until:
            return False
        self.wake(until)
        return True

    def waits_for_refusal(self, kind: ConditionType, *names: str) -> bool:
        """Says in a condition what of these objects is refused, if anything, and whether it is not yet time to try
        again.
        """
        refusal = self.refused(*names)
        if refusal is None:
            return False
        failure = refusals.failure(refusal)
        self.condition(kind, "False", failure.reason, failure.message)
        if failure.verdict == "Permanent":
            self.fail(failure.reason, failure.message)
            return True
        self.set(state=State.WAITING)
        return self.too_soon(refusal.at)

    def too_soon(self, tried: datetime | None) -> bool:
        """Whether what was tried in vain at that time is not to be tried again yet."""
        again = (tried or self.now) + self.settings.refusal_retry
        self.wake(again if again > self.now else self.now + self.settings.refusal_retry)
        return tried is not None and self.now < again

    def lacks(self, pods: dict[str, tuple[int, int]]) -> str:
        """What the cluster lacks for `pods` (name: how many, GPUs of each), or nothing. An unknown cluster lacks
        nothing.
        """
        inventory = self.observed.inventory
        if inventory is None:
            return ""
        largest = max((node.gpus for node in inventory.nodes), default=0)
        for name, (_, gpus) in pods.items():
            if gpus > largest:
                return f"{name} needs {gpus} GPUs on one node, the largest node has {largest}"
        total = sum(count * gpus for count, gpus in pods.values())
        if total > inventory.gpus:
            quota = "" if inventory.gpu_quota is None else f" (the namespace's quota leaves {inventory.gpu_quota})"
            return f"needs {total} GPUs, the cluster has {inventory.gpus}{quota}"
        return ""

    def delete(self, pod: Pod) -> None:
        """Deletes a pod, once; by force when its node does not answer long after its grace. Two pods of a name never
        overlap in the API, and a node that comes back ends what it still runs.
        """
        if not pod.deleting:
            self.actions.append(DeletePod(pod.name, pod.uid))
        elif pod.gone_by is not None:
            overdue = pod.gone_by + self.settings.overdue
            if self.now >= overdue:
                self.actions.append(DeletePod(pod.name, pod.uid, grace_seconds=0))
            else:
                self.wake(overdue)

    def stuck(self, pods: Iterable[Pod]) -> str:
        """What to tell of a deleted pod that outlives its grace, as on a lost node; or nothing."""
        for pod in pods:
            if pod.gone_by is None:
                continue
            late = pod.gone_by + self.settings.late
            if self.now >= late:
                by_force = pod.gone_by + self.settings.overdue
                return (
                    f"{pod.name} should have been gone at {pod.gone_by:%H:%M:%S} UTC, but its node {pod.node} has not"
                    f" confirmed it; at {by_force:%H:%M:%S} it is removed by force"
                )
            self.wake(late)
        return ""

    def restart(self, failure: Failure) -> bool:
        """Counts a failure, and sets when the next try may begin. False where the job has failed instead."""
        if failure.verdict == "Permanent":
            self.fail(failure.reason, failure.message)
            return False
        if failure.verdict == "Disruption":
            self.set(disruptions=self.status.disruptions + 1)
            tries = self.status.disruptions
        else:
            limit = self.spec.run_policy.backoff_limit
            if self.status.restarts >= limit:
                self.fail(Reason.BACKOFF_LIMIT_EXCEEDED, f"{failure.message}; runPolicy.backoffLimit is {limit}")
                return False
            self.set(restarts=self.status.restarts + 1)
            tries = self.status.restarts
        self.set(backoff_until=self.now + backoff(tries, self.settings), state=State.RESTARTING)
        return True

    def fail(self, reason: Reason, message: str) -> None:
        """The job is over."""
        self._end(ConditionType.FAILED, reason, message, State.FAILED)

    def complete(self, reason: Reason, message: str) -> None:
        """The job is done."""
        self._end(ConditionType.COMPLETE, reason, message, State.COMPLETE)

    def _end(self, kind: ConditionType, reason: Reason, message: str, state: State) -> None:
        self.condition(kind, "True", reason, message)
        self.condition(ConditionType.PODS_READY, "False", Reason.JOB_FINISHED)
        self.set(state=state, completion_time=self.now, backoff_until=None)
        self.actions.clear()  # What was to be made is not needed any more.

    def decision(self) -> Decision:
        """What came out."""
        due = min((at - self.now for at in self.wakes if at > self.now), default=None)
        return Decision(
            status=self.status,
            actions=tuple(self.actions),
            events=conditions.events(self.job.status, self.status),
            requeue_after=due,
        )


def backoff(tries: int, settings: Settings) -> timedelta:
    """Doubled with each try, up to the cap."""
    doubled: timedelta = settings.backoff_base * (1 << min(tries - 1, 20))
    return min(settings.backoff_cap, doubled)


def digest(spec: TrainingJobSpec) -> str:
    """Of the part of the spec that a plan answers."""
    sizing = spec.dump()
    part = {key: sizing.get(key) for key in ("framework", "goal", "scaling", "miniBatch", "network", "convolution")}
    for role, replicas in (("worker", spec.worker), ("server", spec.server)):
        part[role] = replicas and [replicas.replicas, replicas.max_replicas, replicas.template.gpus]
    return "sha256:" + hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()
