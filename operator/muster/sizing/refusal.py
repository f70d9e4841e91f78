"""The answer to an impossible goal: the bound, the shortfall, the nearest plan, and what would satisfy the goal."""

from muster.sizing import scaling, text
from muster.sizing.bounds import Cap
from muster.sizing.goals import Kind, Target
from muster.sizing.iteration import Law, Model, State
from muster.sizing.request import Infeasible

LARGEST_REPLICAS = 512
"""The most workers that a job may ask for."""


def goal_not_met(model: Model, nearest: State, cap: Cap, target: Target) -> Infeasible:
    """The error for a goal that no size within `cap` meets."""
    reached = target.words(target.measure(nearest))
    near = f"Nearest: {text.count(nearest.workers, 'worker')} ({text.count(nearest.gpus, 'GPU')}) with {reached}"
    if nearest.servers:
        near += f" and {text.count(nearest.servers, 'server')}"
    wanted = target.words(target.value)
    bound, remedy = _bound(model, nearest, cap, target)
    return Infeasible(f"{target.kind}NotReached", f"The goal of {wanted} is not met: {bound}. {near}. {remedy}.")


def _bound(model: Model, nearest: State, cap: Cap, target: Target) -> tuple[str, str]:
    if target.wants_most:
        each = text.count(model.gpus_per_worker, "GPU")
        return (
            f"already 1 worker of {each} misses it",
            "Use fewer GPUs a worker" if model.gpus_per_worker > 1 else f"Set the goal to {_words(nearest, target)}",
        )
    most = LARGEST_REPLICAS
    if model.law is Law.SHARED_BATCH:  # more GPUs than samples would be another training
        most = min(most, model.candidate.minibatch // model.gpus_per_worker)
    needed = next((state for state in model.up_to(most) if target.met(state)), None)
    if needed is not None:
        gpus = text.count(needed.gpus, "GPU")
        return f"it needs {gpus}, {cap.message}", f"Allow {text.count(needed.workers, 'worker')}, or relax the goal"
    if nearest.exposed > 0:
        exposed = text.seconds(nearest.exposed)
        return f"the exchange leaves {exposed} of an iteration exposed", "A faster network, or a larger mini-batch"
    limit = scaling.largest_speedup(model.candidate.ratio)
    wanted = _speedup(model, target)
    if wanted >= limit:
        ratio = text.percent(model.candidate.ratio)
        bound = f"with an overhead of {ratio} of compute all GPUs together stay below {text.number(limit)} times one"
    else:
        bound = cap.message
    allowed = (nearest.gpus - wanted) / (nearest.gpus * (wanted - 1)) if wanted > 1 else 0.0
    if allowed > 0:
        overhead = text.seconds(allowed * model.candidate.compute)
        return bound, f"With an overhead of at most {overhead} an iteration, {nearest.gpus} GPUs would do"
    return bound, "Profile larger mini-batches, or relax the goal"


def _words(state: State, target: Target) -> str:
    return target.words(target.measure(state))


def _speedup(model: Model, target: Target) -> float:
    if target.kind is Kind.SPEEDUP:
        return target.value
    return target.samples / target.value / model.baseline
