"""What a reader of a plan must know: each warning has a reason, its condition and its words in one place."""

from collections.abc import Iterator

from muster.api.status import PlanWarning
from muster.sizing import text
from muster.sizing.bounds import fewest_nodes
from muster.sizing.iteration import Exchange, Law
from muster.sizing.minibatch import Candidate
from muster.sizing.problem import Decision, Problem
from muster.sizing.request import Limits
from muster.sizing.topology import ring_seconds

MOST = 16
SANE_ITERATION_SECONDS = (1e-5, 3600.0)
SANE_RATIO = 10.0
SANE_BYTES = (1, 10**13)


def of(problem: Problem, decision: Decision) -> list[PlanWarning]:
    """All warnings of a plan, those about the decision first, then those about its inputs."""
    found = [
        *_of_counts(problem, decision),
        *_of_nodes(problem, decision),
        *_of_exchange(problem, decision),
        *_of_batch(problem, decision),
    ]
    found += [*problem.network.warnings, *_of_values(problem, decision.model.candidate)]
    found += [PlanWarning(reason=one.reason, message=one.message) for one in problem.report.warnings]
    return found[:MOST]


def _warn(reason: str, message: str) -> PlanWarning:
    return PlanWarning(reason=reason, message=message)


def _of_counts(problem: Problem, decision: Decision) -> Iterator[PlanWarning]:
    limits, state = problem.limits, decision.state
    if limits.workers is not None and limits.workers != decision.recommended.workers:
        yield _warn(
            "UserWorkers",
            f"worker.replicas {limits.workers} is used; the rules recommend {decision.recommended.workers}.",
        )
    recommended = decision.model.servers_for(state.workers).count
    if limits.uses_servers and limits.servers is not None and limits.servers != recommended:
        yield _warn("UserServers", f"server.replicas {limits.servers} is used; the rules recommend {recommended}.")
    target = problem.target
    if not target.met(state):
        yield _warn(
            "GoalNotMet",
            f"{text.count(state.workers, 'worker')} give {target.words(target.measure(state))}, the goal is"
            f" {target.words(target.value)}.",
        )


def _of_nodes(problem: Problem, decision: Decision) -> Iterator[PlanWarning]:
    workers, limits = decision.state.workers, problem.limits
    if not limits.uses_gpus and limits.workers is None and workers > 1 and limits.max_workers >= Limits.max_workers:
        yield _warn(
            "RoomUnknown",
            f"Whether there are processors and memory for {workers} workers without GPUs is not checked: only"
            f" worker.maxReplicas, {limits.max_workers} here, bounds them.",
        )
    nodes = fewest_nodes(problem.limits, problem.inventory, workers)
    if nodes is not None and nodes > 1 and decision.model.exchange is Exchange.UNKNOWN:
        yield _warn(
            "CrossesNodes",
            f"{workers} workers need {nodes} nodes, and between nodes the overhead is larger than measured on one:"
            " give network.workerBandwidth, and hold the prediction against the running job.",
        )


def _of_exchange(problem: Problem, decision: Decision) -> Iterator[PlanWarning]:
    model, state = decision.model, decision.state
    choice = model.servers_for(state.workers)
    if choice.bound == "WorkerLink":
        yield _warn(
            "WorkerLinkBinds",
            f"The workers' own links take {text.seconds(state.exchange)} for an exchange, compute takes"
            f" {text.seconds(state.compute)}: no number of servers hides it.",
        )
    if choice.bound == "Placement":
        share = text.percent(model.shards.largest_share)
        yield _warn(
            "LargestTensorDominates",
            f"The largest tensor holds {share} of the parameters and {problem.limits.framework} puts it on one"
            f" server: more than {text.count(choice.count, 'server')} would not help. Split the tensor.",
        )
    if model.exchange is Exchange.UNKNOWN and state.workers > 1:
        ring = ring_seconds(model.traffic, model.links, state.workers)
        if ring > state.compute:
            yield _warn(
                "ExchangeNotCounted",
                "The network was neither given nor measured, so the all-reduce is not counted. At"
                f" {text.bandwidth(model.links.worker)} it would take {text.seconds(ring)} of every iteration,"
                f" compute {text.seconds(state.compute)}. Give network.workerBandwidth.",
            )


def _of_batch(problem: Problem, decision: Decision) -> Iterator[PlanWarning]:
    model, state = decision.model, decision.state
    candidate, limits = model.candidate, problem.limits
    smallest, largest = model.curve.measured
    if not problem.report.mini_batch_applied:
        yield _warn(
            "MiniBatchNotApplied",
            f"The command never mentions $(MUSTER_MINIBATCH): every GPU keeps the script's own mini-batch of"
            f" {candidate.minibatch}.",
        )
    for unfit in problem.rejected:
        if unfit.minibatch == candidate.minibatch:
            used = "is used" if limits.minibatch is None else "is used, as miniBatch.value says"
            yield _warn("MiniBatchDoesNotFit", f"A mini-batch of {unfit.minibatch} {used}, but {unfit.message}.")
    if model.law is Law.SHARED_LOAD and state.gpus > 1:
        yield _warn(
            "MiniBatchFixed",
            f"Each GPU keeps {candidate.minibatch} samples, so the global batch grows to {state.minibatch * state.gpus}"
            " and the overhead is counted as one resource that all GPUs share. Set scaling: Weak if each worker loads"
            " its own data.",
        )
    if not smallest <= state.minibatch <= largest:
        side = f"above {largest}, the largest" if state.minibatch > largest else f"below {smallest}, the smallest"
        yield _warn(
            "BeyondMeasuredRange",
            f"A mini-batch of {state.minibatch} is {side} that was profiled: its time is an extrapolation.",
        )
    device = problem.report.device
    if limits.uses_gpus and device.kind == "cpu":
        yield _warn(
            "ProfiledOnCpu",
            f"The workers ask for GPUs, and the profile is of a CPU ({device.name}): no time in it is theirs. Profile"
            " where there is such a GPU, and see that the script moves its model to it.",
        )
    if candidate.point is not None and candidate.point.overhead_time is None:
        yield _warn(
            "OverheadNotMeasured",
            f"The report has no overhead time at mini-batch {candidate.minibatch}: it is taken to be 0, so that Lemma 1"
            " allows any number of GPUs.",
        )
    if candidate.point is not None and not candidate.point.steady:
        yield _warn(
            "NotSteady",
            f"The iterations at mini-batch {candidate.minibatch} never became steady, so the plan is uncertain.",
        )


def _of_values(problem: Problem, candidate: Candidate) -> Iterator[PlanWarning]:
    low, high = SANE_ITERATION_SECONDS
    if not low <= candidate.iteration <= high:
        yield _warn(
            "ValueOutOfRange", f"An iteration of {text.seconds(candidate.iteration)} is unusual: is the unit right?"
        )
    if candidate.ratio > SANE_RATIO:
        yield _warn(
            "ValueOutOfRange",
            f"The overhead is {text.number(candidate.ratio)} times the compute: the GPUs mostly wait. Check how data is"
            " loaded before adding GPUs.",
        )
    exchanged = problem.report.parameters.exchanged_bytes
    if not SANE_BYTES[0] <= exchanged <= SANE_BYTES[1]:
        yield _warn(
            "ValueOutOfRange", f"{text.volume(exchanged)} exchanged an iteration is unusual: is the report right?"
        )
