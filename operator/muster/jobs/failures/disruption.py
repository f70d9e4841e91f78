"""Eviction, preemption, node loss and shutdown, refused admission on a node, taints: retried without counting."""

from muster.jobs.failures.verdict import Failure, Verdict
from muster.jobs.model import Pod
from muster.jobs.reasons import Reason

_CONDITIONS = {
    "PreemptionByScheduler": "was preempted by a pod of higher priority",
    "DeletionByTaintManager": "had to leave its node, which has a taint that it does not tolerate",
    "EvictionByEvictionAPI": "was evicted through the API, as when its node is drained",
    "DeletionByPodGC": "was removed with its node",
    "TerminationByKubelet": "was ended by its node, for lack of resources or for its shutdown",
}
_REASONS = {
    "Evicted": "was evicted by its node",
    "Preempting": "was preempted by a critical pod",
    "Preempted": "was preempted",
    "NodeLost": "was on a node that is lost",
    "NodeShutdown": "was on a node that shut down",
    "Shutdown": "was on a node that shut down",
    "Terminated": "was ended by the shutdown of its node",
    "NodeAffinity": "was on a node that no longer matches its affinity",
    "UnexpectedAdmissionError": "was not admitted by its node: a device may have failed",
    "TopologyAffinityError": "was not admitted by its node: its devices cannot be aligned",
}
_OUT_OF = "OutOf"
"""Admission's reasons, with the resource after it: the scheduler and the node disagreed about what was free."""


def failure(pod: Pod) -> Failure | None:
    """A disruption, if it was one."""
    story = _CONDITIONS.get(pod.disruption) or _REASONS.get(pod.reason)
    if story is None and pod.reason.startswith(_OUT_OF):
        story = f"was not admitted by its node: no {pod.reason.removeprefix(_OUT_OF)} was free any more"
    if story is None and pod.disruption:
        story = f"was disrupted ({pod.disruption})"
    if story is None:
        return None
    where = f" ({pod.node})" if pod.node else ""
    detail = f": {pod.message}" if pod.message else ""
    advice = "; request as much memory as it uses" if pod.reason == "Evicted" and "memory" in pod.message else ""
    return Failure(Verdict.DISRUPTION, Reason.DISRUPTED, f"{pod.name} {story}{where}{detail}{advice}")
