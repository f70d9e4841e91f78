"""Every reason that a condition can have, and what each says. The list is closed: docs/operations.md has one line for
each of them.
"""

from enum import StrEnum


class State(StrEnum):
    """status.state: a summary for the printer column."""

    PENDING = "Pending"
    PROFILING = "Profiling"
    WAITING = "Waiting"
    STARTING = "Starting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"


class Reason(StrEnum):
    """Of a condition. `meaning` is its documentation."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "Reason":
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    # Before anything is known.
    NOT_STARTED = "NotStarted", "Nothing has been done about this yet."
    # Profiled
    PROFILING = "Profiling", "The profiling pod runs, or is about to."
    PROFILE_RETRY = "ProfileRetry", "The profiling pod ended without a report; another one follows."
    PROFILED = "Profiled", "The profile is in the status."
    REPORT_UNREADABLE = "ReportUnreadable", "There is no profile report where one should be, or it breaks the format."
    PROFILING_FAILED = (
        "ProfilingFailed",
        "The profiling pod failed, measured no mini-batch, or no report was found in time.",
    )
    COMMAND_MISSING = (
        "CommandMissing",
        "The training container has no command, and an image's entrypoint cannot be wrapped.",
    )
    # Sized
    SIZED = "Sized", "The plan is in the status."
    SIZED_WITH_USER_VALUES = (
        "SizedWithUserValues",
        "The plan uses a number of the user's where the rules recommend another.",
    )
    INFEASIBLE = "Infeasible", "No plan satisfies the goal within the limits."
    INSUFFICIENT_RESOURCES = "InsufficientResources", "The cluster has less than the plan asks for; no pod is made."
    # Suspended
    SUSPENDED = "Suspended", "spec.runPolicy.suspend is true: the job has no pods."
    RESUMED = "Resumed", "The job is not suspended any more."
    NOT_SUSPENDED = "NotSuspended", "The job has never been suspended."
    # PodsReady
    PODS_READY = "PodsReady", "Every pod of the present attempt is ready or done."
    PODS_STARTING = "PodsStarting", "Pods are being made, or are not ready yet."
    TERMINATING = "Terminating", "Pods of an earlier attempt, or of an earlier job of this name, are not gone yet."
    BACKOFF = "Backoff", "The next attempt waits for its time."
    UNSCHEDULABLE = "Unschedulable", "No node has room for a pod."
    IMAGE_UNAVAILABLE = "ImageUnavailable", "A container's image cannot be pulled."
    CONFIGURATION_ERROR = "ConfigurationError", "A container cannot be made as its pod template says."
    NAME_TAKEN = "NameTaken", "A pod or service with a name of this job's belongs to somebody else."
    QUOTA_EXCEEDED = "QuotaExceeded", "The namespace's quota refuses a pod."
    REFUSED = "Refused", "The API server, or a webhook, refuses an object that the job needs."
    NOT_PERMITTED = "NotPermitted", "The operator may not make what the job needs."
    POD_LOST = "PodLost", "A pod was deleted by somebody else."
    DISRUPTED = "Disrupted", "A pod was evicted or preempted, or its node went away."
    JOB_FINISHED = "JobFinished", "The job is over, and needs no pods."
    # Complete
    SUCCEEDED = "Succeeded", "The success policy is satisfied."
    RECOMMENDED = "Recommended", "spec.mode is Recommend: the plan is all that was asked for."
    # Failed
    BACKOFF_LIMIT_EXCEEDED = (
        "BackoffLimitExceeded",
        "The job failed more often than spec.runPolicy.backoffLimit allows.",
    )
    DEADLINE_EXCEEDED = "DeadlineExceeded", "The job ran longer than spec.runPolicy.activeDeadlineSeconds."
    CANNOT_START = (
        "CannotStart",
        "A pod could not start for its image, configuration or command, and no retry would change that.",
    )
    REJECTED = "Rejected", "The API server rejects an object as invalid: the same one would be rejected again."
    INVALID_SPEC = "InvalidSpec", "The spec, or the job's name, breaks a rule that the API server did not check."
    # What ended a pod; shown where the next attempt is waited for, and in the message of Failed.
    EXITED = "Exited", "The training container exited with an error."
    OUT_OF_MEMORY = "OutOfMemory", "The training container passed its memory limit."
    DEVICE_OUT_OF_MEMORY = "DeviceOutOfMemory", "The script ran out of the GPU's memory."
    OUT_OF_STORAGE = "OutOfStorage", "The pod used more local storage than it may."
    POD_FAILED = "PodFailed", "The pod failed without its training container having run to an end."


WARNINGS = frozenset(Reason) - {
    Reason.NOT_STARTED,
    Reason.PROFILING,
    Reason.PROFILED,
    Reason.SIZED,
    Reason.SIZED_WITH_USER_VALUES,
    Reason.SUSPENDED,
    Reason.RESUMED,
    Reason.NOT_SUSPENDED,
    Reason.PODS_READY,
    Reason.PODS_STARTING,
    Reason.TERMINATING,
    Reason.JOB_FINISHED,
    Reason.SUCCEEDED,
    Reason.RECOMMENDED,
}
"""Reasons whose events are warnings."""
