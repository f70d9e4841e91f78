"""A plan's prediction from runs of the job itself: a law fitted to them in place of the rules' own figures.

The rules size a job that has never run. Once it has run at several sizes, those iterations know what no profile of one
GPU does. What is chosen stays with the rules; what is predicted of it comes from the law, and the plan says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.api.inventory import Inventory
from muster.api.job import Goal
from muster.api.measured import Fit, MeasuredPlan, Run
from muster.api.report import Report
from muster.api.status import Alternative, Plan, PlanWarning, Prediction
from muster.sizing import caveats, text
from muster.sizing.goals import Target
from muster.sizing.iteration import State
from muster.sizing.joint import best_of
from muster.sizing.overlap import NOTHING
from muster.sizing.planner import decide, digest, written
from muster.sizing.prediction import Calibrated, Configuration, Interval, Lemma2, Model, Optimus, Pollux, Sample
from muster.sizing.prediction.interval import placed
from muster.sizing.prediction.samples import ALONE, PLACEMENT_NAMES, Columns
from muster.sizing.problem import Decision, Problem
from muster.sizing.request import Limits
from muster.sizing.rounding import ceil, floor, nearest

NAMES = {
    "lemma2": "Lemma 2 with the bandwidth of the runs",
    "calibrated": "Muster's calibrated law",
    "optimus": "Optimus's law",
    "pollux": "Pollux's law",
}
SIZES, OF_ONE_KIND = 3, 2
"""The fewest sizes beyond one GPU, and how many of them must be of the plan's kind: one is left out and predicted."""
_APART = 4
"""Times, of the two predictions of an iteration."""
_DESCRIBED = ("ParameterServers", "AllReduce", "OtherMiniBatch")
"""Alternatives whose exchange the laws know."""


class CannotFit(ValueError):
    """No law, or not the one that was asked for, can be fitted to the runs. The message names what is missing."""


def plan_measured(
    report: Report, goal: Goal, limits: Limits, inventory: Inventory | None, runs: Sequence[Run], law: str | None = None
) -> MeasuredPlan:
    """As `plan`, with predictions by `law` (a key of NAMES), or else by the law with the least held-out error.

    Raises:
        CannotFit: too few runs, or such that the law's terms cannot be told apart.
        Infeasible: as `plan` does.
    """
    problem = Problem(report, Target.of(goal), limits, inventory)
    decision = decide(problem)
    evidence = Evidence.of(decision, runs)
    told = [*(run.model_dump_json() for run in runs), law or ""]
    planned = written(problem, decision, digest(report, goal, limits, inventory, *told))
    asked = evidence.configuration(decision.state)
    evidence.check(asked)
    name, interval, message = _choose(_laws(limits), evidence.samples, law)
    forecast = Forecast(interval, decision.model.baseline)
    fit = Fit(
        model=name,
        runs=len(runs),
        held_out_error_percent=ceil(100 * interval.held_out_error),
        message=f"{NAMES[name]}, fitted to {text.count(len(runs), 'run')} and the profile, {message}{_nodes(asked)}.",
        rules=planned.predicted,
    )
    predicted = forecast.of(asked)
    warnings = [*_goal(problem, decision, evidence, forecast), *_strangers(predicted, planned), *_others(planned)]
    changed = {
        "predicted": predicted,
        "alternatives": [_alternative(one, evidence, asked, forecast) for one in planned.alternatives],
        "warnings": warnings[: caveats.MOST],
    }
    return MeasuredPlan(**{**dict(planned), **changed}, fit=fit)


@dataclass(frozen=True)
class Evidence:
    """The profile's iterations on one GPU and the runs, and how the plan's sizes are read as one of them."""

    samples: tuple[Sample, ...]
    gpus_per_worker: int
    workers_per_node: int
    """On the fullest node of any run: the plan's workers are taken to be as dense."""

    @classmethod
    def of(cls, decision: Decision, runs: Sequence[Run]) -> "Evidence":
        """From the profile that the decision rests on."""
        per_worker = decision.model.gpus_per_worker
        profile = [Sample(Configuration(point.minibatch, 1), point.iteration) for point in decision.model.curve.points]
        own = [Sample(_ran(run, per_worker), run.iteration_time_microseconds / 1e6) for run in runs]
        densest = max((sample.configuration.densest for sample in own), default=1)
        return cls((*profile, *own), per_worker, max(1, densest // per_worker))

    def configuration(self, state: State) -> Configuration:
        """Where a state would run."""
        return self.at(state.minibatch, state.workers, state.servers)

    def at(self, minibatch: int, workers: int, servers: int) -> Configuration:
        """Where so many workers would run."""
        nodes = workers if servers else -(-workers // self.workers_per_node)
        return Configuration(minibatch, workers * self.gpus_per_worker, nodes, servers)

    def tells(self, configuration: Configuration) -> bool:
        """Whether its kind of placement was measured."""
        return _kind(configuration) in {ALONE, *(_kind(sample.configuration) for sample in self.samples)}

    def check(self, asked: Configuration) -> None:
        """CannotFit where no law could be fitted and tested."""
        beyond = {placed(s.configuration): s.configuration for s in self.samples if s.configuration.gpus > 1}
        kind = _kind(asked)
        alike = sum(_kind(configuration) == kind for configuration in beyond.values())
        missing = max(SIZES - len(beyond), 0 if kind == ALONE else OF_ONE_KIND - alike)
        if missing > 0:
            where = PLACEMENT_NAMES[kind]
            alike_words = "" if kind == ALONE else f", {alike} of them {where}"
            needed = "" if kind == ALONE else f", {OF_ONE_KIND} of them {where} as the plan is"
            raise CannotFit(
                f"the runs have {text.count(len(beyond), 'size')} of more than one GPU{alike_words}; a law needs"
                f" {SIZES}{needed}, so that one can be left out to test it. Measure {missing} more: a size is a number"
                " of workers, of servers and of nodes"
            )


@dataclass(frozen=True)
class Forecast:
    """What a fitted law says. `baseline`: samples per second of one GPU."""

    interval: Interval
    baseline: float

    def of(self, configuration: Configuration) -> Prediction:
        """The figures of a plan, rounded as the rules' own are."""
        low, centre, high = (float(seconds[0]) for seconds in self.interval.predict([configuration]))
        rate = configuration.minibatch * configuration.gpus / centre
        return Prediction(
            iteration_time_microseconds=nearest(centre * 1e6),
            samples_per_second=nearest(rate),
            efficiency_percent=floor(100 * rate / self.baseline / configuration.gpus),
            speedup=text.number(rate / self.baseline),
            iteration_time_low_microseconds=nearest(low * 1e6),
            iteration_time_high_microseconds=nearest(high * 1e6),
        )

    def moved(self, states: Sequence[State], configurations: Sequence[Configuration]) -> list[State]:
        """The states with the throughput that the law predicts."""
        rates = [
            c.minibatch * c.gpus / float(seconds)
            for c, seconds in zip(configurations, self.interval.fitted.predict(configurations), strict=True)
        ]
        return [
            replace(state, samples_per_second=rate, speedup=rate / self.baseline)
            for state, rate in zip(states, rates, strict=True)
        ]


def _laws(limits: Limits) -> dict[str, Model]:
    """By name, the paper's own first."""
    return {
        "lemma2": Lemma2("sum" if limits.overlap == NOTHING else "max"),
        "calibrated": Calibrated(),
        "optimus": Optimus(),
        "pollux": Pollux(),
    }


def _choose(laws: dict[str, Model], samples: Sequence[Sample], law: str | None) -> tuple[str, Interval, str]:
    """The law asked for, or that of the least held-out error, with that error and its rivals' in words."""
    fits: dict[str, Interval] = {}
    refused: dict[str, str] = {}
    for name, model in laws.items():
        try:
            fits[name] = Interval.of(model, samples)
        except ValueError as error:
            refused[name] = str(error)
    if law in refused or not fits:
        raise CannotFit(refused[law] if law else "; ".join(dict.fromkeys(refused.values())))
    name = law or min(fits, key=lambda each: fits[each].held_out_error)
    rivals = [f"{other} {text.percent(fits[other].held_out_error)}" for other in fits if other != name]
    rivals += [f"{other} not: {why}" for other, why in refused.items()]
    own = f"errs by {text.percent(fits[name].held_out_error)} on sizes left out of the fit"
    return name, fits[name], f"{own} ({'; '.join(rivals)})"


def _ran(run: Run, gpus_per_worker: int) -> Configuration:
    gpus = run.workers * (run.gpus_per_worker or gpus_per_worker)
    return Configuration(run.mini_batch, gpus, run.nodes or run.workers, run.servers)


def _kind(configuration: Configuration) -> int:
    return int(Columns.of([configuration]).placement[0])


def _nodes(asked: Configuration) -> str:
    if asked.servers or asked.gpus == 1:
        return ""
    return f". The plan's {asked.gpus} GPUs are taken to be on {text.count(asked.nodes, 'node')}, as dense as the runs"


def _alternative(one: Alternative, evidence: Evidence, asked: Configuration, forecast: Forecast) -> Alternative:
    configuration = evidence.at(one.mini_batch, one.workers, one.servers)
    if one.topology not in _DESCRIBED or not evidence.tells(configuration):
        return one.model_copy(update={"message": f"By the rules alone: {one.message}"})
    predicted, of_plan = forecast.of(configuration), forecast.of(asked)
    change = predicted.samples_per_second / max(1, of_plan.samples_per_second) - 1
    other = f"{text.count(one.workers, 'worker')} of mini-batch {one.mini_batch}: "
    message = (
        f"{other if one.topology == 'OtherMiniBatch' else ''}"
        f"{text.seconds(predicted.iteration_time_microseconds / 1e6)} an iteration,"
        f" {text.percent(abs(change))} {'faster' if change > 0 else 'slower'} than planned."
    )
    return one.model_copy(update={"predicted": predicted, "message": message})


def _goal(problem: Problem, decision: Decision, evidence: Evidence, forecast: Forecast) -> Sequence[PlanWarning]:
    """Where the plan, as the law sees it, misses its goal: by how much, and what would meet it."""
    target, state = problem.target, decision.state
    [measured] = forecast.moved([state], [evidence.configuration(state)])
    if target.met(measured):
        return []
    message = (
        f"By the runs {text.count(state.workers, 'worker')} give {target.words(target.measure(measured))}, the goal is"
        f" {target.words(target.value)}: {_remedy(target, decision, evidence, forecast)} would meet it."
    )
    return [PlanWarning(reason="GoalNotMet", message=message)]


def _remedy(target: Target, decision: Decision, evidence: Evidence, forecast: Forecast) -> str:
    """More servers where they do, for they cost no GPU; else another number of workers, with the rules' servers."""
    model, state = decision.model, decision.state
    most = model.most_servers if state.servers else 0
    more = [model.at(state.workers, count) for count in range(state.servers + 1, most + 1)]
    best = next((each for each in _told(more, evidence, forecast) if target.met(each)), None)
    if best is not None:
        return text.count(best.servers, "server")
    best = best_of(_told(list(model.up_to(decision.cap.workers)), evidence, forecast), target)
    return text.count(best.workers, "worker") if best else "no number of workers within the limits"


def _told(states: Sequence[State], evidence: Evidence, forecast: Forecast) -> list[State]:
    """The states that the law can tell, as it has them."""
    known = [state for state in states if evidence.tells(evidence.configuration(state))]
    return forecast.moved(known, [evidence.configuration(state) for state in known])


def _strangers(predicted: Prediction, planned: Plan) -> Sequence[PlanWarning]:
    """Where runs and profile are so far apart that they may not belong together."""
    runs, rules = (each.iteration_time_microseconds for each in (predicted, planned.predicted))
    if max(runs, rules) <= _APART * min(runs, rules):
        return []
    message = (
        f"By the runs an iteration takes {text.seconds(runs / 1e6)}, by the profile and the rules"
        f" {text.seconds(rules / 1e6)}: unless the network explains it, they are of different scripts or devices."
    )
    return [PlanWarning(reason="RunsDisagree", message=message)]


def _others(planned: Plan) -> list[PlanWarning]:
    """The plan's warnings but that of its goal, which the law has judged."""
    return [warning for warning in planned.warnings if warning.reason != "GoalNotMet"]
