"""Which bandwidths a plan counts with: the user's own, else the measured, else an assumption that is said aloud."""

from dataclasses import dataclass

from muster.api.report import NetworkMeasurement, Report
from muster.api.status import PlanWarning
from muster.sizing import text
from muster.sizing.request import Limits

ASSUMED_BYTES_PER_SECOND = 1.25e9
"""10 Gbit/s: what a machine in a data centre has at least."""
SANE_BYTES_PER_SECOND = (1e6, 2e11)
"""8 Mbit/s to 1.6 Tbit/s. Outside of it a slip of units is the likelier explanation."""
BELOW_NAME = 0.7
"""A link measured below this share of what it was said to be is worth a warning."""


@dataclass(frozen=True)
class Network:
    """Effective bandwidths per node and direction, and the latency of one message in seconds."""

    server: float
    worker: float
    latency: float
    worker_known: bool
    warnings: tuple[PlanWarning, ...] = ()

    @classmethod
    def of(cls, report: Report, limits: Limits) -> "Network":
        """From the user's numbers and the report's measurements."""
        measured = report.network
        server = _fan_in(measured)
        worker = _stream(measured)
        warnings = []
        if limits.uses_servers:
            warnings += _doubts("server", limits.server_bandwidth, server)
        if limits.uses_servers or limits.worker_bandwidth or worker:
            warnings += _doubts("worker", limits.worker_bandwidth, worker)
        latency = limits.latency_seconds
        if latency is None:
            latency = (measured.latency_nanoseconds or 0) / 1e9 if measured else 0.0
        return cls(
            server=limits.server_bandwidth or server or ASSUMED_BYTES_PER_SECOND,
            worker=limits.worker_bandwidth or worker or ASSUMED_BYTES_PER_SECOND,
            latency=latency,
            worker_known=bool(limits.worker_bandwidth or worker),
            warnings=tuple(warnings),
        )


def _fan_in(measured: NetworkMeasurement | None) -> float | None:
    """What one server takes from all its workers at once; else its best measured stream."""
    if measured is None:
        return None
    return measured.fan_in_bytes_per_second or _stream(measured)


def _stream(measured: NetworkMeasurement | None) -> float | None:
    """A worker's link: its slower direction at the number of streams that moves the most."""
    if measured is None or not measured.rates:
        return None
    return float(max(min(rate.up_bytes_per_second, rate.down_bytes_per_second) for rate in measured.rates))


def _doubts(role: str, given: float | None, measured: float | None) -> list[PlanWarning]:
    field = f"network.{role}Bandwidth"
    if not given and not measured:
        return [
            PlanWarning(
                reason="BandwidthAssumed",
                message=f"The {role}s' bandwidth is neither given nor measured:"
                f" {text.bandwidth(ASSUMED_BYTES_PER_SECOND)} is assumed. Give {field}.",
            )
        ]
    warnings = []
    if given and measured and measured < BELOW_NAME * given:
        warnings.append(
            PlanWarning(
                reason="BandwidthBelowName",
                message=f"{field} is {text.bandwidth(given)}, but {text.bandwidth(measured)} was measured. The given"
                " value is used; leave it out to use the measured one.",
            )
        )
    used = given or measured or 0.0
    if not SANE_BYTES_PER_SECOND[0] <= used <= SANE_BYTES_PER_SECOND[1]:
        warnings.append(
            PlanWarning(
                reason="ValueOutOfRange",
                message=f"A {role} bandwidth of {text.bandwidth(used)} is unusual. Is the unit right (Gbit is bits, GB"
                " is bytes)?",
            )
        )
    return warnings
