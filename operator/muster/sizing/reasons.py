"""The one sentence that explains each number of a plan: what decided it, and what one more or one less would do."""

from dataclasses import replace
from itertools import product

from muster.api.status import Choice
from muster.sizing import memory, scaling, text
from muster.sizing.goals import Kind, Target
from muster.sizing.iteration import Exchange, Law, Model, State
from muster.sizing.joint import best_state
from muster.sizing.problem import Decision, Problem
from muster.sizing.servers import worker_seconds


def mini_batch(problem: Problem, decision: Decision) -> Choice:
    """Samples per GPU and iteration."""
    state, model = decision.state, decision.model
    limited_by, message = _why_candidate(problem, model)
    value = recommended = state.minibatch
    if problem.limits.minibatch is not None:
        fastest = max(problem.fitting, key=lambda candidate: candidate.samples_per_second)
        recommended, limited_by = fastest.minibatch, "User"
        fastest_rate = _rate(fastest.minibatch, fastest.samples_per_second)
        message = f"your miniBatch.value {value} is used; of those profiled, {fastest_rate} is fastest"
    elif not problem.report.mini_batch_applied:
        limited_by = "Script"
        message = f"the command does not use $(MUSTER_MINIBATCH), so the script keeps its own {value}"
    elif model.law is Law.SHARED_BATCH and state.gpus > 1:
        total = state.minibatch * state.gpus
        message += (
            f". {text.count(state.gpus, 'GPU')} share the {model.candidate.minibatch} samples of one GPU: {value} each"
        )
        if total != model.candidate.minibatch:
            message += f", {total} in all"
    message += _by_formula(problem, model)
    return Choice(value=value, recommended=recommended, limited_by=limited_by, message=_sentence(message))


def _by_formula(problem: Problem, model: Model) -> str:
    """The measured peak against the layer formula, where the report has the layers."""
    layers = [memory.Layer(layer.outputs, layer.parameters) for layer in problem.report.layers]
    peak = model.candidate.peak_bytes
    if not layers or not peak:
        return ""
    formula = memory.iteration_bytes(layers, model.candidate.minibatch, memory.TRAINING)
    return (
        f". Measured peak {text.size(peak)}, {text.number(peak / formula)} of the layer formula's {text.size(formula)}"
    )


def _why_candidate(problem: Problem, model: Model) -> tuple[str, str]:
    chosen = model.candidate
    larger = [one for one in problem.rejected if one.minibatch > chosen.minibatch]
    slower = [one for one in problem.fitting if one.minibatch > chosen.minibatch]
    if larger and (not slower or larger[0].minibatch < slower[0].minibatch):
        return larger[0].reason, larger[0].message + _largest(problem)
    if slower:
        return "Throughput", (
            f"{_rate(chosen.minibatch, chosen.samples_per_second)} on one GPU;"
            f" {_rate(slower[0].minibatch, slower[0].samples_per_second)} is no faster"
        )
    rate = _rate(chosen.minibatch, chosen.samples_per_second)
    return "Candidates", f"{rate} on one GPU; no larger one was profiled{_largest(problem)}"


def _largest(problem: Problem) -> str:
    largest = problem.report.largest_mini_batch
    if largest is None:
        return ""
    return f"; the largest that fits is {largest.mini_batch}, as {'tried' if largest.verified else 'predicted'}"


def _rate(minibatch: int, samples_per_second: float) -> str:
    return f"{minibatch} ({text.number(samples_per_second)} samples/s)"


def workers(problem: Problem, decision: Decision) -> Choice:
    """Worker pods."""
    recommended, model, target = decision.recommended, decision.model, problem.target
    if decision.solution is None:
        limited_by = decision.cap.reason
        why = f"no count meets the goal of {target.words(target.value)}; {recommended.workers} come nearest"
    elif target.wants_most:
        limited_by, why = _why_not_more(model, recommended, decision.cap.workers, target)
        if limited_by == "Cap":
            limited_by = decision.cap.reason
            why = f"{_reaches(target, recommended)}, and {decision.cap.message}"
    else:
        limited_by, why = target.kind.value, _why_not_fewer(model, recommended, target)
    if problem.limits.workers is not None:
        state = decision.state
        own = f"your worker.replicas {state.workers} is used: {_reaches(target, state)}"
        why = f"{own}; the rules recommend {recommended.workers}: {why}"
        limited_by = "User"
    low, high = interval(decision, target)
    return Choice(
        value=decision.state.workers,
        recommended=recommended.workers,
        limited_by=limited_by,
        message=_sentence(why),
        recommended_low=low,
        recommended_high=high,
    )


def interval(decision: Decision, target: Target) -> tuple[int | None, int | None]:
    """The fewest and the most workers that the rules recommend within the intervals of compute and overhead time.

    None where the goal cannot be met at the end of an interval.
    """
    model = decision.model
    candidate = model.candidate
    counts = []
    for compute, overhead in product(candidate.compute_interval, candidate.overhead_interval):
        if compute <= 0:
            return None, None
        moved = replace(candidate, compute=compute, overhead=overhead)
        baseline = model.baseline * moved.samples_per_second / candidate.samples_per_second
        curve = model.curve.scaled(compute / candidate.compute)
        moved_model = replace(model, candidate=moved, curve=curve, baseline=baseline)
        found = best_state(moved_model, decision.cap.workers, target)
        counts.append(found.workers if found else None)
    if None in counts:
        return None, None
    return min(n for n in counts if n), max(n for n in counts if n)


def _why_not_more(model: Model, state: State, most: int, target: Target) -> tuple[str, str]:
    if state.workers >= most:
        return "Cap", ""
    more = model.best(state.workers + 1)
    if target.met(more):
        bound = model.servers_for(more.workers).bound
        return (
            bound,
            f"{_one_more(more.workers)} adds no throughput: {text.seconds(more.exposed)} of exchange is exposed",
        )
    if target.kind is Kind.EFFICIENCY:
        why = f"{_one_more(more.workers)} falls to {target.words(target.measure(more))}"
        return "Efficiency", why + _beyond_lemma(model, state, target)
    return target.kind.value, f"{_one_more(more.workers)} comes to {target.words(target.measure(more))}"


def _beyond_lemma(model: Model, state: State, target: Target) -> str:
    """Where Lemma 1 alone would have allowed more: what it leaves out that costs here."""
    allowed = scaling.largest_gpus(target.value, model.candidate.ratio)
    if model.law is Law.OWN_LOAD or (allowed is not None and allowed < state.gpus + model.gpus_per_worker):
        return ""
    more = model.best(state.workers + 1)
    cause = "smaller batches were measured to take longer a sample"
    ideal = model.candidate.compute / (more.gpus if model.law is Law.SHARED_BATCH else 1)
    if more.exposed > more.compute - ideal:
        cause = f"{text.seconds(more.exposed)} of exchange would be exposed"
    return f" (Lemma 1 alone allows {'any number of' if allowed is None else allowed} GPUs, but {cause})"


def _why_not_fewer(model: Model, state: State, target: Target) -> str:
    reach = _reaches(target, state)
    if state.workers == 1:
        return reach
    fewer = model.best(state.workers - 1)
    return f"{reach}; {_reaches(target, fewer)}"


def _reaches(target: Target, state: State) -> str:
    verb = {Kind.EFFICIENCY: "keep", Kind.SPEEDUP: "reach", Kind.DEADLINE: "take", Kind.COST: "cost"}[target.kind]
    subject = text.count(state.workers, "worker")
    verb += "s" if state.workers == 1 else ""
    verb = verb.replace("reachs", "reaches")
    return f"{subject} {verb} {target.words(target.measure(state))}"


def _one_more(amount: int) -> str:
    name = text.ordinal(amount)
    return f"{'an' if name.startswith(('8', '11th', '18th')) else 'a'} {name} worker"


def servers(problem: Problem, decision: Decision) -> Choice:
    """Parameter server pods: the recommendation is Lemma 2's for the workers that are used."""
    model, state = decision.model, decision.state
    choice = model.servers_for(state.workers)
    if model.exchange is not Exchange.SERVERS:
        return Choice(value=0, recommended=0, limited_by="AllReduce", message="The job has no servers: it all-reduces.")
    best = model.at(state.workers, choice.count)
    message = _why_servers(model, best, choice.needed, choice.bound)
    limited_by = choice.bound
    if problem.limits.servers is not None:
        limited_by = "User"
        message = (
            f"your server.replicas {state.servers} is used: {text.seconds(state.exposed)} of every iteration exposed;"
            f" the rules recommend {choice.count}: {message}"
        )
    return Choice(value=state.servers, recommended=choice.count, limited_by=limited_by, message=_sentence(message))


def _why_servers(model: Model, state: State, needed: float, bound: str) -> str:
    exchange, exposed, compute = (text.seconds(x) for x in (state.exchange, state.exposed, state.compute))
    count = text.count(state.servers, "server")
    match bound:
        case "OneWorker":
            return "one worker exchanges with nobody"
        case "Bandwidth" if state.servers == 1:
            return f"1 server exchanges in {exchange}, hidden behind {compute} of compute"
        case "Bandwidth":
            fewer = model.at(state.workers, state.servers - 1)
            return (
                f"{text.count(fewer.servers, 'server')} leave{'s' if fewer.servers == 1 else ''}"
                f" {text.seconds(fewer.exposed)} of every iteration exposed, {state.servers} nothing"
            )
        case "WorkerLink":
            link = text.seconds(worker_seconds(model.traffic, model.links))
            return (
                f"a worker's own link takes {link} for the exchange, compute {compute}: no number of servers hides it;"
                f" {count} leave{'s' if state.servers == 1 else ''} {exposed} exposed, more would not help"
            )
        case "Placement":
            return (
                f"the fullest of {count} holds {text.percent(model.shards.fullest(state.servers))} of the parameters,"
                f" so {exposed} of every iteration stay exposed; more servers would not help"
            )
        case "Latency":
            latency = text.seconds(model.traffic.message_seconds)
            messages = text.count(model.traffic.messages, "message")
            return f"the latency of {messages}, {latency}, exceeds {compute} of compute; {exposed} stay exposed"
        case "NoOverlap":
            return f"nothing hides behind compute: {count} exchange in {exchange}"
        case _:
            return (
                f"{text.number(needed)} servers would hide the exchange; server.maxReplicas {model.most_servers} leaves"
                f" {exposed} of every iteration exposed"
            )


def _sentence(words: str) -> str:
    """A sentence begins with a capital and ends with a full stop."""
    return words[:1].upper() + words[1:].rstrip(".") + "."
