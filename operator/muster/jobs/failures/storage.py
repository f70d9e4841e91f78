"""A pod that outgrew its own limit of local storage. The node says "Evicted" here too, but the pod did it and would do
it again.
"""

from muster.jobs.failures.verdict import Failure, Verdict
from muster.jobs.model import Pod
from muster.jobs.reasons import Reason

_OWN_LIMIT = (
    "exceeds the total limit of containers",
    "exceeds the limit",
    "exceeded its local ephemeral storage limit",
)


def failure(pod: Pod) -> Failure | None:
    """Counted. The node's own lack of storage is a disruption, and not of this class."""
    if pod.reason != "Evicted" or pod.disruption or not any(text in pod.message for text in _OWN_LIMIT):
        return None
    return Failure(
        Verdict.COUNTED,
        Reason.OUT_OF_STORAGE,
        f"{pod.name}: {pod.message}; raise the limit, or write to a volume of its own",
    )
