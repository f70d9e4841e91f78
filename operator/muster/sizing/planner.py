"""`plan`: from a report, a goal, limits and an inventory to the plan that stands in a job's status."""

from hashlib import sha256
from json import dumps

from muster.api.inventory import Inventory
from muster.api.job import Goal
from muster.api.report import Report
from muster.api.status import ConvolutionPlan, Plan
from muster.sizing import caveats, reasons, refusal
from muster.sizing.algorithms import algorithms
from muster.sizing.alternatives import alternatives
from muster.sizing.bottleneck import bottleneck
from muster.sizing.bounds import fewest_nodes, inventory_cap
from muster.sizing.goals import Target
from muster.sizing.joint import nearest_state, solve
from muster.sizing.predicted import prediction
from muster.sizing.problem import Decision, Problem
from muster.sizing.request import Infeasible, Limits


def plan(report: Report, goal: Goal, limits: Limits, inventory: Inventory | None) -> Plan:
    """What the rules recommend within the limits, the user's own counts kept, with the reason of each number.

    Pure: equal inputs give an equal plan, and `inputs` is their digest.

    Raises:
        Infeasible: the goal cannot be met, or the cluster cannot hold the job.
    """
    problem = Problem(report, Target.of(goal), limits, inventory)
    return written(problem, decide(problem), digest(report, goal, limits, inventory))


def written(problem: Problem, decision: Decision, inputs: str) -> Plan:
    """The plan of a decision, every number with its reason."""
    limits = problem.limits
    return Plan(
        inputs=inputs,
        mini_batch=reasons.mini_batch(problem, decision),
        workers=reasons.workers(problem, decision),
        servers=reasons.servers(problem, decision),
        gpus_per_worker=limits.gpus_per_worker if limits.uses_gpus else 0,
        one_gpu_mini_batch=decision.model.candidate.minibatch,
        global_batch=decision.state.minibatch * decision.state.gpus,
        nodes=fewest_nodes(limits, problem.inventory, decision.state.workers),
        convolution=convolution_plan(problem, decision),
        predicted=prediction(decision.model, decision.state),
        bottleneck=bottleneck(decision.model, decision.state),
        alternatives=alternatives(problem, decision),
        warnings=caveats.of(problem, decision),
    )


def decide(problem: Problem) -> Decision:
    """The joint choice, then the user's own counts over it."""
    limits = problem.limits
    solution = solve(problem.models, problem.target)
    if solution is not None:
        model, recommended, bound = solution.model, solution.state, solution.cap
    else:
        model, bound = max(problem.models, key=lambda pair: pair[0].candidate.samples_per_second)
        recommended = nearest_state(model, bound.workers, problem.target)
        if limits.workers is None:
            raise refusal.goal_not_met(model, recommended, bound, problem.target)
    workers = limits.workers or recommended.workers
    _check_available(limits, problem.inventory)
    return Decision(model, model.best(workers), recommended, solution, bound)


def _check_available(limits: Limits, inventory: Inventory | None) -> None:
    """A user's count wins over every rule, but pods that no node can hold would wait for ever."""
    available = inventory_cap(limits, inventory)
    if limits.workers is not None and available is not None and limits.workers > available.workers:
        needed = limits.workers * limits.gpus_per_worker
        raise Infeasible(
            "InsufficientGPUs",
            f"worker.replicas {limits.workers} needs {needed} GPUs, {available.message}. Ask for at most"
            f" {available.workers}.",
        )


def convolution_plan(problem: Problem, decision: Decision) -> ConvolutionPlan | None:
    """Of the mini-batch that one GPU was profiled at."""
    found = algorithms(problem.report, decision.model.candidate, problem.limits.workspace)
    return found.plan() if found else None


def digest(report: Report, goal: Goal, limits: Limits, inventory: Inventory | None, *more: str) -> str:
    """sha256 of everything that a plan is computed from, in one canonical form."""
    gpus = sorted(node.gpus for node in inventory.nodes if node.gpus) if inventory else None
    cluster = inventory and {"gpus": gpus, "quota": inventory.gpu_quota}
    parts = [report.model_dump_json(), goal.model_dump_json(), dumps(vars(limits), sort_keys=True), dumps(cluster)]
    parts += more
    return f"sha256:{sha256(chr(0).join(parts).encode()).hexdigest()}"
