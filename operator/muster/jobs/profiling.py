"""From a spec to a plan: the profiling pod, its report, the sizing rules. A plan that stands is not asked for again."""

from datetime import timedelta

from muster import sizing
from muster.api.job import ProfileSource
from muster.api.report import Report
from muster.api.status import Choice, ConditionType, Plan
from muster.jobs import children, failures, peer, profiling_pod, reports
from muster.jobs.draft import Draft, digest
from muster.jobs.members import PROFILER, pod_name
from muster.jobs.model import CreatePod, Pod, ReadProgress, ReadReport, ReportProblem
from muster.jobs.objects import BadTemplate
from muster.jobs.reasons import Reason, State
from muster.sizing import Infeasible, Limits

_TOO_SMALL = "InsufficientGPUs"
"""Sizing's reason where not even one worker fits into the cluster."""
_SLACK = timedelta(seconds=30)
"""The kubelet ends a pod at its deadline; so long after it, it did not."""


def step(draft: Draft) -> bool:
    """Whether the plan stands; if not, what brings it nearer is in the draft, or the job has failed."""
    peer.tend(draft)
    underway = draft.children.current or draft.status.attempt_start_time is not None
    if draft.status.plan is not None and (underway or draft.status.planned_for == digest(draft.spec)):
        return True
    report = _report(draft)
    if report is None or draft.ended:
        return False
    return _size(draft, report)


def _report(draft: Draft) -> Report | None:
    if draft.status.profile is not None:
        found = reports.reread(draft)
        if not isinstance(found, ReportProblem):
            return found
        draft.set(profile=None)  # Nothing is left of it: another profile is the only way to another plan.
    source, name = draft.spec.profile.source, draft.spec.profile.config_map_name
    found = _from_config_map(draft, name) if source == ProfileSource.CONFIG_MAP and name else _from_pod(draft)
    if found is None:
        return None
    fitting = [point for point in found.points if point.fits]
    if not fitting:
        problems = "; ".join(f"{point.mini_batch}: {point.problem or 'does not fit'}" for point in found.points)
        _give_up(draft, f"no mini-batch could be profiled ({problems}); offer smaller ones in spec.miniBatch")
        return None
    origin = ProfileSource.CONFIG_MAP if source == ProfileSource.CONFIG_MAP else ProfileSource.POD
    draft.set(profile=reports.summary(found, draft.observed.report_digest, origin, draft.now), backoff_until=None)
    sizes = ", ".join(str(point.mini_batch) for point in fitting)
    draft.condition(ConditionType.PROFILED, "True", Reason.PROFILED, f"on {found.device.name}, at mini-batch {sizes}")
    return found


def _size(draft: Draft, report: Report) -> bool:
    try:
        plan = sizing.plan(report, draft.spec.goal, Limits.of(draft.spec), draft.observed.inventory)
    except Infeasible as infeasible:
        if infeasible.reason == _TOO_SMALL:  # A cluster can grow; a goal out of reach stays so.
            draft.condition(ConditionType.SIZED, "False", Reason.INSUFFICIENT_RESOURCES, infeasible.message)
            draft.set(state=State.WAITING)
            draft.wake(draft.now + draft.settings.resize_retry)
            return False
        draft.condition(ConditionType.SIZED, "False", Reason.INFEASIBLE, infeasible.message)
        draft.fail(Reason.INFEASIBLE, infeasible.message)
        return False
    if draft.status.plan is not None and draft.status.attempt:
        # A pod of the plan before that nobody has seen yet must not become a member of this one.
        draft.next_attempt()
    draft.set(plan=plan, planned_for=digest(draft.spec))
    reason, message = _sized(plan)
    draft.condition(ConditionType.SIZED, "True", reason, message)
    return True


def _sized(plan: Plan) -> tuple[Reason, str]:
    def words(name: str, choice: Choice) -> str:
        beside = f" (recommended: {choice.recommended})" if choice.value != choice.recommended else ""
        return f"{name}: {choice.value}{beside}"

    choices = {"workers": plan.workers, "servers": plan.servers, "mini-batch": plan.mini_batch}
    own = any(choice.value != choice.recommended for choice in choices.values())
    return Reason.SIZED_WITH_USER_VALUES if own else Reason.SIZED, ", ".join(words(*item) for item in choices.items())


def _from_config_map(draft: Draft, name: str) -> Report | None:
    found = reports.read(draft, ReadReport(config_map=name), name)
    if isinstance(found, Report):
        return found
    draft.set(state=State.PROFILING)
    if found is None:
        draft.condition(ConditionType.PROFILED, "False", Reason.PROFILING, f"reading config map {name}")
        return None
    message = f"config map {name}: {found.message}"
    draft.condition(ConditionType.PROFILED, "False", Reason.REPORT_UNREADABLE, message)
    patience = timedelta(seconds=draft.spec.profile.active_deadline_seconds)
    if draft.status.start_time is not None:
        if draft.now >= draft.status.start_time + patience:
            _give_up(draft, message)
        else:
            draft.wake(draft.status.start_time + patience)
    return None


def _from_pod(draft: Draft) -> Report | None:
    draft.set(state=State.PROFILING)
    pod = draft.children.profiler
    if draft.spec.run_policy.suspend and not (pod and failures.done(pod)):
        draft.condition(ConditionType.PROFILED, "False", Reason.SUSPENDED)
        return None
    if pod is None:
        _start(draft)
        return None
    if pod.deleting:
        draft.delete(pod)
        draft.condition(
            ConditionType.PROFILED, "False", Reason.TERMINATING, f"{pod.name} is being deleted; another follows"
        )
        return None
    if failures.done(pod) or failures.failed(pod):
        return _result(draft, pod)
    _watch(draft, pod)
    return None


def _start(draft: Draft) -> None:
    name = pod_name(draft.job.name, PROFILER)
    left = [pod for pod in draft.children.old if pod.name == name]
    if left or name in draft.children.foreign:
        for pod in left:
            draft.delete(pod)
        _wait_for(draft, name, foreign=not left)
        return
    if draft.waits_for_backoff() or draft.waits_for_refusal(ConditionType.PROFILED, name):
        return
    if missing := draft.lacks({"the profiling pod": (1, draft.spec.worker.template.gpus)}):
        draft.set(state=State.WAITING)
        draft.condition(ConditionType.PROFILED, "False", Reason.INSUFFICIENT_RESOURCES, missing)
        draft.wake(draft.now + draft.settings.resize_retry)
        return
    try:
        body = profiling_pod.build(draft.job, draft.spec, children.tries(draft.status), draft.settings)
    except BadTemplate as problem:
        draft.fail(Reason.INVALID_SPEC, str(problem))
        return
    except LookupError as problem:
        draft.condition(ConditionType.PROFILED, "False", Reason.COMMAND_MISSING, str(problem.args[0]))
        draft.fail(Reason.COMMAND_MISSING, str(problem.args[0]))
        return
    if draft.refused(name) is None:
        draft.condition(ConditionType.PROFILED, "False", Reason.PROFILING, f"{name} is being made")
    draft.actions.append(CreatePod(name, body))


def _wait_for(draft: Draft, name: str, *, foreign: bool) -> None:
    pod = draft.children.foreign.get(name)
    if foreign and pod is not None and not pod.deleting:
        message = f"a pod named {name} belongs to somebody else; delete it, or give the job another name"
        draft.condition(ConditionType.PROFILED, "False", Reason.NAME_TAKEN, message)
    elif draft.reason(ConditionType.PROFILED) != Reason.PROFILE_RETRY:
        draft.condition(ConditionType.PROFILED, "False", Reason.TERMINATING, f"an earlier {name} is not gone yet")


def _result(draft: Draft, pod: Pod) -> Report | None:
    failure = failures.failure(pod) if failures.failed(pod) else None
    if failure is not None and failure.verdict == failures.Verdict.DISRUPTION:
        _retry(draft, pod, failure)
        return None
    found = reports.read(draft, ReadReport(pod=pod.name), pod.uid)
    if not isinstance(found, ReportProblem):
        return found
    if pod.reason == "DeadlineExceeded":
        _give_up(draft, f"{pod.name} took longer than profile.activeDeadlineSeconds: {found.message}")
    elif failure is None or _said_why(pod):
        _give_up(draft, found.message)
    else:
        _retry(draft, pod, failure)
    return None


def _said_why(pod: Pod) -> bool:
    """A profiler that ended by itself, or for want of memory, would end so again. One that was killed is worth
    another try.
    """
    end = pod.termination
    return end is not None and (end.exit_code < 128 or end.reason == "OOMKilled")  # 128 + signal: killed.


def _watch(draft: Draft, pod: Pod) -> None:
    limit = timedelta(seconds=draft.spec.profile.active_deadline_seconds)
    since = pod.started or (pod.created if pod.node else None)
    blocked = failures.blocked(pod)
    if blocked and blocked.hopeless:
        _give_up(draft, blocked.message)
    elif since is not None and draft.now >= since + limit + _SLACK:
        why = f" ({blocked.message})" if blocked else ""
        _give_up(draft, f"{pod.name} took longer than profile.activeDeadlineSeconds, {limit.seconds} s{why}")
    elif blocked:
        draft.condition(ConditionType.PROFILED, "False", blocked.reason, blocked.message)
    else:
        draft.condition(
            ConditionType.PROFILED,
            "False",
            Reason.PROFILING,
            f"{pod.name} is profiling the script{_progress(draft, pod)}{peer.trouble(draft)}",
        )
        peer.start(draft, pod)
    if since is not None:
        draft.wake(since + limit + _SLACK)


def _progress(draft: Draft, pod: Pod) -> str:
    """How far it has come, by the profiler's own word, which is asked for now and then."""
    every, known = draft.settings.progress_interval, draft.observed.progress
    if every is None or pod.phase != "Running":
        return ""
    said = known if known and known.source == pod.uid else None
    due = (said.at if said else pod.started or draft.now) + every
    if draft.now >= due:
        draft.actions.append(ReadProgress(pod.name, pod.uid))
    else:
        draft.wake(due)
    return f": {said.text}" if said and said.text else ""


def _retry(draft: Draft, pod: Pod, failure: failures.Failure) -> None:
    if draft.restart(failure):
        draft.set(state=State.PROFILING)
        draft.condition(ConditionType.PROFILED, "False", Reason.PROFILE_RETRY, f"{failure.message}; it is made again")
        draft.delete(pod)
    else:
        draft.condition(ConditionType.PROFILED, "False", Reason.PROFILING_FAILED, failure.message)


def _give_up(draft: Draft, message: str) -> None:
    draft.condition(ConditionType.PROFILED, "False", Reason.PROFILING_FAILED, message)
    draft.fail(Reason.PROFILING_FAILED, message)
