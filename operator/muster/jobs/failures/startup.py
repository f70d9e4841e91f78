"""Pods that do not start: images, configuration, commands that cannot run, and no room on any node."""

from muster.jobs.failures.verdict import Blocked, Failure, Verdict
from muster.jobs.model import Pod
from muster.jobs.reasons import Reason

_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    }
    | {"SignatureValidationFailed"}
)
_CONFIGURATION = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreStartHookError",
        "PostStartHookError",
    }
)
_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Nothing in the cluster can mend these: they are wrong as written."""
_CANNOT_RUN = frozenset({"StartError", "ContainerCannotRun"})


def blocked(pod: Pod) -> Blocked | None:
    """An image or configuration error, as the kubelet reports it while it goes on trying."""
    if pod.waiting_reason in _IMAGE:
        reason, advice = Reason.IMAGE_UNAVAILABLE, "is the image's name right, and may the pod pull it?"
    elif pod.waiting_reason in _CONFIGURATION:
        reason, advice = (
            Reason.CONFIGURATION_ERROR,
            "do the config maps, secrets and commands that the template names exist?",
        )
    else:
        return None
    detail = f": {pod.waiting_message}" if pod.waiting_message else ""
    return Blocked(
        reason,
        f"{pod.name}: {pod.waiting_reason}{detail}; {advice}",
        expires=True,
        hopeless=pod.waiting_reason in _HOPELESS,
    )


def unschedulable(pod: Pod) -> Blocked | None:
    """No room: the scheduler's own words say what is missing. Waiting costs nothing, so only the job's deadline ends
    it.
    """
    if not pod.unschedulable or pod.node:
        return None
    return Blocked(Reason.UNSCHEDULABLE, f"{pod.name} waits for a node: {pod.unschedulable}", expires=False)


def failure(pod: Pod) -> Failure | None:
    """A command that the image does not have, or that cannot run: permanent."""
    end = pod.termination
    if end is None or end.reason not in _CANNOT_RUN:
        return None
    detail = f": {end.message.strip()}" if end.message else ""
    return Failure(
        Verdict.PERMANENT,
        Reason.CANNOT_START,
        f"{pod.name}: the command cannot run in this image ({end.reason}){detail}",
    )
