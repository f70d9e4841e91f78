"""Out of memory: of the container, told by the kubelet, or of the GPU, told by the script's last words."""

from muster.jobs.failures.verdict import Failure, Verdict
from muster.jobs.model import Pod
from muster.jobs.reasons import Reason

_DEVICE = (
    "CUDA out of memory",
    "OutOfMemoryError",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "ResourceExhaustedError",
)


def failure(pod: Pod) -> Failure | None:
    """Counted: with the same memory the same may happen again, but what else ran beside it may not."""
    end = pod.termination
    if end is None:
        return None
    if end.reason == "OOMKilled":
        return Failure(
            Verdict.COUNTED,
            Reason.OUT_OF_MEMORY,
            f"{pod.name} passed its memory limit ; raise resources.limits.memory, or load data with fewer processes",
        )
    if any(text in end.message for text in _DEVICE):
        return Failure(
            Verdict.COUNTED,
            Reason.DEVICE_OUT_OF_MEMORY,
            f"{pod.name} ran out of the GPU's memory; choose a smaller miniBatch.value",
        )
    return None
