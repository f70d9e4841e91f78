"""Other ways to run the same job at the planned number of workers, each with its prediction."""

from collections.abc import Iterator
from dataclasses import replace

from muster.api.status import Alternative
from muster.sizing import text
from muster.sizing.iteration import Exchange, Model, State
from muster.sizing.joint import best_state
from muster.sizing.predicted import prediction
from muster.sizing.problem import Decision, Problem

WAYS = {
    Exchange.ALL_REDUCE: ("AllReduce", "Ring all-reduce between the workers, without servers"),
    Exchange.COLOCATED: ("ColocatedServers", "A server on every worker's node"),
    Exchange.SPLIT: ("SplitServers", "As many CPU-only servers as workers, whose nodes serve as well (BytePS)"),
}


def alternatives(problem: Problem, decision: Decision) -> list[Alternative]:
    """One server less and one more, the other topologies, and another mini-batch where that gets further."""
    model, state = decision.model, decision.state
    found = [*_other_minibatch(problem, decision)]
    if model.exchange is Exchange.SERVERS and state.workers > 1:
        found = [*_other_servers(model, state), *_topologies(model, state), *found]
    elif model.exchange is Exchange.ALL_REDUCE and state.workers > 1:
        found = [*_with_servers(model, state), *found]
    return found


def _alternative(topology: str, message: str, model: Model, state: State) -> Alternative:
    return Alternative(
        topology=topology,
        workers=state.workers,
        servers=state.servers,
        mini_batch=state.minibatch,
        predicted=prediction(model, state),
        message=message,
    )


def _against(planned: State, other: State) -> str:
    """The difference in words, by throughput."""
    change = other.samples_per_second / planned.samples_per_second - 1
    iteration = f"{text.seconds(other.iteration)} an iteration"
    if abs(change) < 0.0005:
        return f"{iteration}, as fast as planned"
    return f"{iteration}, {text.percent(abs(change))} {'faster' if change > 0 else 'slower'} than planned"


def _other_servers(model: Model, state: State) -> Iterator[Alternative]:
    for count in (state.servers - 1, state.servers + 1):
        if count >= 1:
            other = model.at(state.workers, count)
            exposed = f"{text.seconds(other.exposed)} of exchange exposed" if other.exposed else "Nothing exposed"
            message = f"{exposed}: {_against(state, other)}."
            yield _alternative("ParameterServers", message, model, other)


def _topologies(model: Model, state: State) -> Iterator[Alternative]:
    for exchange, (name, words) in WAYS.items():
        other_model = replace(model, exchange=exchange, fixed_servers=None)
        servers = {Exchange.ALL_REDUCE: 0}.get(exchange, state.workers)
        other = other_model.at(state.workers, servers)
        yield _alternative(name, f"{words}: {_against(state, other)}.", other_model, other)


def _with_servers(model: Model, state: State) -> Iterator[Alternative]:
    other_model = replace(model, exchange=Exchange.SERVERS, most_servers=max(1, state.workers))
    other = other_model.best(state.workers)
    message = f"{text.count(other.servers, 'parameter server')}: {_against(state, other)}."
    yield _alternative("ParameterServers", message, other_model, other)


def _other_minibatch(problem: Problem, decision: Decision) -> Iterator[Alternative]:
    """The one that serves the goal best, where it is not the one with the best throughput of one GPU."""
    target, planned = problem.target, decision.state
    if decision.solution is None or problem.limits.workers is not None:
        return
    best: tuple[Model, State] | None = None
    for model, cap in problem.models:
        state = best_state(model, cap.workers, target)
        if state is None:
            continue
        against = best[1] if best else planned
        better = state.gpus < against.gpus
        if target.wants_most:
            better = state.samples_per_second > against.samples_per_second * 1.01
        if better:
            best = model, state
    if best is not None:
        model, state = best
        message = (
            f"A mini-batch of {model.candidate.minibatch} on one GPU is slower there, but "
            f"{text.count(state.workers, 'worker')} give {text.number(state.samples_per_second)} samples/s."
        )
        yield _alternative("OtherMiniBatch", message, model, state)
