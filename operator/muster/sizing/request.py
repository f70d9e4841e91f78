"""What a plan is asked to respect: the user's own numbers and bounds in SI units; how the impossible is answered."""

from dataclasses import dataclass

from muster.api.bandwidth import bytes_per_second
from muster.api.job import Framework, Overlap, Scaling, TrainingJobSpec, Workspace
from muster.sizing.overlap import BACKWARD_PASS, NOTHING, WHOLE_ITERATION

_WINDOWS = {Overlap.FULL: WHOLE_ITERATION, Overlap.BACKWARD: BACKWARD_PASS, Overlap.NONE: NOTHING}


@dataclass(frozen=True)
class Limits:
    """From the spec; None where the user left it to Muster. Bandwidths in bytes per second, per node and direction."""

    framework: Framework
    scaling: Scaling
    uses_servers: bool
    gpus_per_worker: int
    """Devices a worker: its GPUs, or 1 where it asks for none and trains on its CPU."""
    uses_gpus: bool = True
    """False: workers ask for no GPU, so the inventory's GPUs are no bound."""
    minibatch: int | None = None
    workers: int | None = None
    servers: int | None = None
    max_workers: int = 64
    max_servers: int = 64
    server_bandwidth: float | None = None
    worker_bandwidth: float | None = None
    latency_seconds: float | None = None
    workspace: Workspace = Workspace.SHARED
    local_aggregation: bool = True
    """GPUs of one worker add up their gradients before they send them: they are one worker to Lemma 2."""
    overlap: float = WHOLE_ITERATION
    """Share of compute that an exchange can hide behind; Lemma 2 has all of it (see `overlap`)."""

    @classmethod
    def of(cls, spec: TrainingJobSpec) -> "Limits":
        """The limits that a TrainingJob states. A worker without GPUs counts as one device."""
        network = spec.network
        server, worker = network.server_bandwidth, network.worker_bandwidth
        latency = network.latency_microseconds
        return cls(
            framework=spec.framework,
            scaling=spec.scaling,
            uses_servers=spec.server is not None,
            gpus_per_worker=max(1, spec.worker.template.gpus),
            uses_gpus=spec.worker.template.gpus > 0,
            minibatch=spec.mini_batch.value,
            workers=spec.worker.replicas,
            servers=spec.server.replicas if spec.server else None,
            max_workers=spec.worker.max_replicas,
            max_servers=spec.server.max_replicas if spec.server else 0,
            server_bandwidth=bytes_per_second(server) if server else None,
            worker_bandwidth=bytes_per_second(worker) if worker else None,
            latency_seconds=None if latency is None else latency / 1e6,
            workspace=spec.convolution.workspace,
            local_aggregation=network.local_aggregation,
            overlap=_WINDOWS[network.overlap],
        )


class Infeasible(Exception):
    """No plan satisfies the goal within the limits.

    `reason` is a CamelCase word for the Sized condition; the message says which bound, by how much, and what would
    satisfy it.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
