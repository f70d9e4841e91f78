"""The curves behind a plan, for whoever draws them: batch, GPUs and servers, each against what it changes."""

from dataclasses import dataclass

from muster.api.inventory import Inventory
from muster.api.job import Goal
from muster.api.report import Report
from muster.sizing import servers
from muster.sizing.goals import Target
from muster.sizing.iteration import Exchange
from muster.sizing.minibatch import MEMORY_MARGIN
from muster.sizing.planner import decide
from muster.sizing.problem import Problem
from muster.sizing.request import Limits


@dataclass(frozen=True)
class BatchPoint:
    """A profiled mini-batch on one GPU."""

    minibatch: int
    samples_per_second: float | None
    peak_bytes: int | None
    fits: bool


@dataclass(frozen=True)
class Curves:
    """`scaling`: (GPUs, speed-up, efficiency); `servers`: (servers, seconds of an iteration), at the planned workers.

    `goal`: in the goal's own unit; `knee`: Lemma 2's real number of servers. The chosen values are the plan's.
    """

    batches: tuple[BatchPoint, ...]
    memory_bound: int
    chosen_batch: int
    scaling: tuple[tuple[int, float, float], ...]
    goal: Target
    chosen_gpus: int
    servers: tuple[tuple[int, float], ...]
    knee: float
    chosen_servers: int


def curves(report: Report, goal: Goal, limits: Limits, inventory: Inventory | None) -> Curves:
    """The curves of the plan for the same arguments.

    Raises:
        Infeasible: as `plan` does.
    """
    problem = Problem(report, Target.of(goal), limits, inventory)
    decision = decide(problem)
    model, state = decision.model, decision.state
    fastest = {one.minibatch: one for one in problem.fitting}
    most_workers = max(decision.cap.workers, state.workers)
    most_servers = max(model.most_servers, state.servers) if model.exchange is Exchange.SERVERS else 0
    window = model.overlap * state.compute
    nics = model.nics(state.workers)
    return Curves(
        batches=tuple(
            BatchPoint(
                minibatch=point.mini_batch,
                samples_per_second=one.samples_per_second if (one := fastest.get(point.mini_batch)) else None,
                peak_bytes=point.memory.peak_bytes if point.memory else None,
                fits=point.mini_batch in fastest,
            )
            for point in sorted(report.points, key=lambda point: point.mini_batch)
        ),
        memory_bound=int(report.device.memory_bytes * (1 - MEMORY_MARGIN)),
        chosen_batch=model.candidate.minibatch,
        scaling=tuple((one.gpus, one.speedup, one.efficiency) for one in model.up_to(most_workers)),
        goal=problem.target,
        chosen_gpus=state.gpus,
        servers=tuple((count, model.at(state.workers, count).iteration) for count in range(1, most_servers + 1)),
        knee=servers.lemma(model.traffic, model.links, nics, window) if most_servers and nics > 1 else 0.0,
        chosen_servers=state.servers,
    )
