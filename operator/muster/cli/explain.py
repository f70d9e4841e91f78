"""A plan in sentences: each number with its rule, the measured inputs of the rule, and what bound it."""

from collections.abc import Iterator

from muster.api.bandwidth import bytes_per_second
from muster.api.job import Goal, Scaling, TrainingJobSpec
from muster.api.status import Choice, Plan, ProfilePoint, ProfileStatus, TrainingJobStatus
from muster.sizing import text


def sentences(spec: TrainingJobSpec, status: TrainingJobStatus) -> Iterator[str]:
    """Of a job that has a profile and a plan; fewer where it has not."""
    profile, plan = status.profile, status.plan
    if profile is not None:
        yield from _profile(profile, plan)
    if plan is None:
        return
    yield _choice(
        "mini-batch of {} samples a GPU", plan.mini_batch, "the most samples a second of those that fit in memory"
    )
    yield _choice("{} workers", plan.workers, f"{_lemma_1(spec.scaling)}, for {_goal(spec.goal)}")
    if spec.server is not None:
        yield _choice(
            "{} parameter servers",
            plan.servers,
            f"Lemma 2, servers for N_w workers >= 2 S_p N_w / (B T_C){_links(spec, profile)}",
        )
    if plan.convolution is not None and plan.convolution.message:
        yield f"Convolutions: {sentence(plan.convolution.message)}"
    predicted = plan.predicted
    yield (
        f"Predicted: {text.seconds(predicted.iteration_time_microseconds / 1e6)} an iteration, "
        f"{predicted.samples_per_second:,} samples a second, {_times(predicted.speedup)} as fast as one GPU, "
        f"{predicted.efficiency_percent} % of linear."
    )
    if plan.bottleneck is not None:
        yield f"Bottleneck: {sentence(plan.bottleneck.message)} {sentence(plan.bottleneck.remedy)}"
    for alternative in plan.alternatives:
        servers = text.count(alternative.servers, "server")
        yield f"Or {alternative.topology}, {servers}: {sentence(alternative.message)}"
    for warning in plan.warnings:
        yield f"Warning: {sentence(warning.message)}"


def _lemma_1(scaling: Scaling) -> str:
    if scaling == Scaling.WEAK:
        return "Lemma 1 for workers that load their own data (Weak): only an exchange that nothing hides costs speed"
    return "Lemma 1, efficiency of G GPUs = (1 + R) / (1 + G R)"


def _times(speedup: str) -> str:
    return "just" if speedup == "1" else f"{speedup} times"


def _profile(profile: ProfileStatus, plan: Plan | None) -> Iterator[str]:
    point = _point(profile, plan)
    if point is None or point.compute_time_microseconds is None:
        return
    compute, overhead = point.compute_time_microseconds, point.overhead_time_microseconds or 0
    yield (
        f"Profiled on {profile.device.name}: a mini-batch of {point.mini_batch} takes "
        f"{text.seconds(compute / 1e6)} of compute (T_C) and {text.seconds(overhead / 1e6)} of overhead (T_O), "
        f"so R = T_O / T_C = {text.number(overhead / compute)}; "
        f"{text.volume(profile.parameter_bytes)} of parameters are exchanged each way (S_p)."
    )


def _point(profile: ProfileStatus, plan: Plan | None) -> ProfilePoint | None:
    """The measured mini-batch that the plan rests on, or the nearest to it."""
    timed = sorted((p for p in profile.points if p.fits and p.compute_time_microseconds), key=lambda p: p.mini_batch)
    if plan is None or not timed:
        return timed[-1] if timed else None
    return min(timed, key=lambda point: abs(point.mini_batch - plan.one_gpu_mini_batch))


def _choice(what: str, choice: Choice, rule: str) -> str:
    used = what.format(choice.value)
    used = used[:-1] if choice.value == 1 and used.endswith("s") else used
    theirs = f" (yours; {choice.recommended} recommended)" if choice.value != choice.recommended else ""
    why = f"Decided by {choice.limited_by}: {sentence(choice.message)}"
    return f"{used[0].upper()}{used[1:]}{theirs}. Rule: {rule}. {why}"


def _goal(goal: Goal) -> str:
    if goal.efficiency_percent is not None:
        return f"as many GPUs as keep {goal.efficiency_percent} % of linear speed-up"
    if goal.speedup is not None:
        return f"as few GPUs as are {goal.speedup} times as fast as one"
    if goal.deadline is not None:
        return f"as few GPUs as train {goal.deadline.samples:,} samples in {text.seconds(goal.deadline.seconds)}"
    assert goal.cost is not None
    return f"as many GPUs as train {goal.cost.samples:,} samples for {goal.cost.gpu_seconds:,} GPU-seconds"


def _links(spec: TrainingJobSpec, profile: ProfileStatus | None) -> str:
    given, measured = spec.network.server_bandwidth, profile.server_bandwidth_bytes_per_second if profile else None
    if given is not None:
        return f", with B = {text.bandwidth(bytes_per_second(given))} as the job states"
    return f", with B = {text.bandwidth(measured)} as measured" if measured else ""


def sentence(message: str) -> str:
    """`message` with its full stop."""
    message = message.strip()
    return message if message.endswith((".", "!", "?")) else message + "."
