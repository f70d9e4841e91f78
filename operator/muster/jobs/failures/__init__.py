"""What a pod's end, or its standing still, means for the job. One module a class of causes, asked in order: a
disruption explains an exit code, and not the other way round.
"""

from muster.jobs.failures import disruption, exits, memory, startup, storage
from muster.jobs.failures.verdict import Blocked, Failure, Verdict
from muster.jobs.model import Pod
from muster.jobs.reasons import Reason

__all__ = ["Blocked", "Failure", "Verdict", "blocked", "done", "failed", "failure", "lost"]

_CLASSES = (storage.failure, disruption.failure, startup.failure, memory.failure, exits.failure)


def done(pod: Pod) -> bool:
    """Whether the training container ended well. It decides, not the pod: a sidecar may run on, or fail after it."""
    return pod.termination.exit_code == 0 if pod.termination else pod.phase == "Succeeded"


def failed(pod: Pod) -> bool:
    """Whether the training container ended badly, or the pod did before it could run."""
    return not done(pod) and (pod.termination is not None or pod.phase == "Failed")


def failure(pod: Pod) -> Failure:
    """The meaning of a failed pod's end."""
    found = next((verdict for judge in _CLASSES if (verdict := judge(pod))), None)
    why = ": ".join(filter(None, (pod.reason, pod.message))) or "no reason given; did an init container fail?"
    return found or Failure(
        Verdict.COUNTED, Reason.POD_FAILED, f"{pod.name} failed before its training container ended ({why})"
    )


def lost(name: str, pod: Pod | None) -> Failure:
    """The meaning of a pod that is being deleted, or is gone, and not by Muster."""
    told = disruption.failure(pod) if pod else None
    return told or Failure(Verdict.DISRUPTION, Reason.POD_LOST, f"{name} was deleted by somebody else")


def blocked(pod: Pod) -> Blocked | None:
    """What keeps a pod from running, if anything does."""
    return startup.blocked(pod) or startup.unschedulable(pod)
