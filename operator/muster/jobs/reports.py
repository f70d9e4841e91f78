"""The profile report: where it is read, what of it the status keeps, and that it is kept whole for as long as the job
lives.
"""

from datetime import datetime

from muster.api.job import ProfileSource
from muster.api.report import Report, Timing
from muster.api.status import DeviceStatus, ProfilePoint, ProfileStatus
from muster.jobs import failures, objects
from muster.jobs.draft import Draft
from muster.jobs.model import CreateConfigMap, ReadReport, ReportProblem


def read(draft: Draft, request: ReadReport, origin: str) -> Report | ReportProblem | None:
    """What an earlier pass read there, and None while it is being read. Of a config map, a problem is tried again: it
    may come later.
    """
    observed = draft.observed
    found = observed.report if observed.report_of in ("", origin) else None
    if found is None:
        draft.actions.append(request)
    elif isinstance(found, ReportProblem) and request.config_map and found.at is not None:
        again = found.at + draft.settings.refusal_retry
        draft.wake(again)
        if draft.now >= again:
            draft.actions.append(request)
    return found


def reread(draft: Draft) -> Report | ReportProblem | None:
    """The report of a profile that is already in the status, from where it still lies."""
    job, pod, kept = draft.job, draft.children.profiler, objects.report_name(draft.job.name)
    if draft.spec.profile.source == ProfileSource.CONFIG_MAP and (name := draft.spec.profile.config_map_name):
        return read(draft, ReadReport(config_map=name), name)
    if kept in draft.observed.config_maps:
        return read(draft, ReadReport(config_map=kept), kept)
    if pod is not None and not pod.deleting and (failures.done(pod) or failures.failed(pod)):
        return read(draft, ReadReport(pod=pod.name), pod.uid)
    return ReportProblem(f"the profile report of {job.name} is gone")


def keep(draft: Draft) -> None:
    """Copies the report of a profiling pod into a config map, if it is at hand or can still be read."""
    pod, name = draft.children.profiler, objects.report_name(draft.job.name)
    if name in draft.observed.config_maps or pod is None or pod.deleting or draft.status.profile is None:
        return
    if draft.status.profile.source != ProfileSource.POD:
        return
    found = read(draft, ReadReport(pod=pod.name), pod.uid)
    if isinstance(found, Report) and (body := objects.report(draft.job, found)) is not None:
        draft.actions.append(CreateConfigMap(name, body))


def summary(report: Report, digest: str, source: ProfileSource, now: datetime) -> ProfileStatus:
    """What the status keeps of a report."""

    def microseconds(timing: Timing | None) -> int | None:
        return None if timing is None else round(timing.median_nanoseconds / 1000)

    points = [
        ProfilePoint(
            mini_batch=point.mini_batch,
            fits=point.fits,
            compute_time_microseconds=microseconds(point.compute_time),
            overhead_time_microseconds=microseconds(point.overhead_time),
            peak_memory_bytes=point.memory and point.memory.peak_bytes,
            problem=point.problem,
        )
        for point in report.points
    ]
    network = report.network
    best = max((rate.up_bytes_per_second for rate in network.rates), default=None) if network else None
    return ProfileStatus(
        source=source,
        digest=digest,
        completion_time=now,
        device=DeviceStatus(name=report.device.name, memory_bytes=report.device.memory_bytes),
        parameter_bytes=report.parameters.exchanged_bytes,
        largest_tensor_bytes=max((tensor.bytes for tensor in report.parameters.tensors), default=0),
        tensors=len(report.parameters.tensors),
        server_bandwidth_bytes_per_second=network.fan_in_bytes_per_second if network else None,
        worker_bandwidth_bytes_per_second=best,
        points=points,
    )
