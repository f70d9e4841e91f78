"""What deciding is told once by whoever runs it: the operator's defaults, or those of `muster run`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

PORT = 2222
"""Of every member of a job, as TensorFlow's examples have it."""


def cluster_address(namespace: str, job: str, pod: str) -> str:
    """host:port of a pod of a job, by the job's headless service. The cluster's domain is left to the resolver's
    search list.
    """
    return f"{pod}.{job}.{namespace}.svc:{PORT}"


@dataclass(frozen=True)
class Settings:
    """The defaults are those of a cluster."""

    profiler_image: str = "muster-profiler:dev"
    """Its default user can read /muster-profiler/muster_profiler, which is copied into the profiling pod."""
    profile_command: tuple[str, ...] = ("/bin/sh", "/muster/muster_profiler/inject/muster-profile")
    """What the training command becomes the arguments of."""
    address: Callable[[str, str, str], str] = cluster_address
    """host:port of a member, by namespace, job and pod name."""
    measure_network: bool = True
    """Against a peer pod, where the spec leaves a bandwidth out that the plan needs."""
    progress_interval: timedelta | None = timedelta(seconds=15)
    """Between two looks at how far a profile has come; None: its user sees that himself."""
    backoff_base: timedelta = timedelta(seconds=10)
    """Before the first restart; doubled for each further one."""
    backoff_cap: timedelta = timedelta(minutes=6)
    start_timeout: timedelta = timedelta(minutes=10)
    """A pod that cannot start for its image or configuration has failed after this long."""
    refusal_retry: timedelta = timedelta(seconds=30)
    """Between two tries of what a quota or a webhook refused, or of a report that could not be read."""
    late: timedelta = timedelta(seconds=30)
    """A deleted pod that still exists this long after its grace is worth a word."""
    overdue: timedelta = timedelta(minutes=5)
    """A deleted pod that still exists this long after its grace is removed by force: its node is gone."""
    settle: timedelta = timedelta(seconds=5)
    """Between a job's end and the end of what still runs beside its training containers."""
    resize_retry: timedelta = timedelta(minutes=5)
    """Between two looks at a cluster that is too small for the plan."""
