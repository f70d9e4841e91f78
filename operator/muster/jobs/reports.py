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
    again = isinstance(found, ReportProblem) and request.config_map and not draft.too_soon(found.at)
    if found is None or again:
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
    """Copies a profiling pod's report into a config map, if it is at hand or can still be read, and lets go of a pod
    that runs on after it.
    """
    pod, name = draft.children.profiler, objects.report_name(draft.job.name)
    profile = draft.status.profile
    if pod is None or pod.deleting or profile is None or profile.source != ProfileSource.POD:
        return
    if name not in draft.observed.config_maps:
        refusal = draft.refused(name)
        if refusal is not None and draft.too_soon(refusal.at):
            return
        found = read(draft, ReadReport(pod=pod.name), pod.uid)
        if found is None:
            return
        if isinstance(found, Report) and (body := objects.report(draft.job, found)) is not None:
            draft.actions.append(CreateConfigMap(name, body))
            return
    if pod.phase in ("Pending", "Running"):
        draft.delete(pod)  # A sidecar holds on to its GPUs.


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
        largest_mini_batch=report.largest_mini_batch and report.largest_mini_batch.mini_batch,
        points=points,
    )
