"""Predictions of iterations that the model never saw, and the choice of Muster's form by them alone.

What runs on one GPU is the profile: every model is always given it. Everything else is held out by placement: no
mini-batch of a placement is known when any of it is predicted, and two placements with equal counts of nodes, of GPUs
and of GPUs on the fullest node are one placement.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from statistics import fmean

import numpy as np
from muster.sizing.prediction import (
    Calibrated,
    CalibratedFit,
    Fitted,
    Interval,
    Lemma1,
    Lemma1OwnBatch,
    Lemma2,
    Linear,
    Model,
    Network,
    Optimus,
    Pollux,
    Sample,
)
from muster.sizing.prediction.interval import placed
from numpy.typing import NDArray

from evidence.measured import WORKLOADS, runs

FOLDS = 5
SMALL, LARGE = 4, 8
"""Extrapolation: fit on up to 4 GPUs, predict 8 and more."""
SIZES = (8, 16), (17, 32), (33, 64)
"""Numbers of GPUs, from and to."""

MUSTER = Calibrated()
MODELS: dict[str, Model] = {
    "A linear guess": Linear(),
    "Lemma 1, shared batch": Lemma1(),
    "Lemma 1, own batch": Lemma1OwnBatch(),
    "Lemma 2, maximum": Lemma2("max"),
    "Lemma 2, sum": Lemma2("sum"),
    "Optimus": Optimus(),
    "Pollux": Pollux(),
    "Muster": MUSTER,
}

BARE = Calibrated(congestion=(), straggling="none", unhidden=0.0)
SLOWEST = replace(BARE, unhidden=1 / 3, straggling="log")
STEPS: dict[str, Calibrated] = {
    "Lemma 2 with a soft maximum": BARE,
    "+ the forward pass hides nothing": replace(BARE, unhidden=1 / 3),
    "+ the slowest GPU is waited for": SLOWEST,
    "+ congestion grows with GPUs": replace(SLOWEST, congestion=("gpus",)),
    "+ two nodes are a case of their own": replace(SLOWEST, congestion=("twoNodes", "gpus")),
    "+ GPUs on the fullest node (Muster)": MUSTER,
    "+ number of nodes": replace(MUSTER, congestion=("twoNodes", "gpus", "densest", "nodes")),
}
VARIANTS: dict[str, Calibrated] = {
    "hard maximum (g = 10)": replace(MUSTER, softness=10.0),
    "sum, nothing overlaps (g = 1)": replace(MUSTER, softness=1.0),
    "g = 4, not fitted": replace(MUSTER, softness=4.0),
    "all of compute hides": replace(MUSTER, unhidden=0.0),
    "nobody waits for the slowest": replace(MUSTER, straggling="none"),
    "waiting saturates, 1 - 1/G for ln G": replace(MUSTER, straggling="saturating"),
    "a constant cost of the exchange": replace(MUSTER, affine=True),
    "that, and no congestion": replace(MUSTER, affine=True, congestion=()),
    "compute as a line": replace(MUSTER, measured_compute=False),
    "exponents drawn to 0 harder (0.03)": replace(MUSTER, network=Network(deviation=0.03)),
    "exponents drawn to 0 less (0.3)": replace(MUSTER, network=Network(deviation=0.3)),
    "exponents all but free (3)": replace(MUSTER, network=Network(deviation=3.0)),
}
FORMS = STEPS | VARIANTS
"""Each step keeps those before it; each variant is Muster's form but for the one thing named."""

Errors = NDArray[np.float64]
"""Relative errors, |predicted / measured - 1|."""
Held = dict[str, Errors]
"""By workload."""


def interpolate(model: Model) -> Held:
    """Every placement predicted from all others but those of its fold."""
    return {workload: _over(model, _folds(workload)) for workload in WORKLOADS}


def extrapolate(model: Model, of: Callable[[str], Model] | None = None) -> Held:
    """Fit on up to SMALL GPUs, predict LARGE and more. `of`: a model of its own for each workload."""
    return {workload: _over(of(workload) if of else model, [small_large(workload)]) for workload in WORKLOADS}


def by_size(far: Held) -> dict[str, Errors]:
    """What `extrapolate` returned, of some workloads or all, by the number of GPUs that was predicted."""
    gpus = np.concatenate([[s.configuration.gpus for s in small_large(workload)[1]] for workload in far])
    errors = pooled(far)
    return {f"{low} to {high}": errors[(low <= gpus) & (gpus <= high)] for low, high in SIZES}


def too_low(gpus: int) -> float:
    """The share of runs on more than `gpus` GPUs whose iteration Muster, told of few GPUs, predicts too low."""
    below = []
    for workload in WORKLOADS:
        kept, tested = small_large(workload)
        largest = [s for s in tested if s.configuration.gpus > gpus]
        predicted = MUSTER.fit(kept).predict([s.configuration for s in largest])
        below.append(predicted < np.array([s.iteration for s in largest]))
    return float(np.concatenate(below).mean())


def told_everything(model: Model) -> Held:
    """Fit on all runs, predict those of LARGE GPUs and more: as near as extrapolating could come."""
    return {workload: _over(model, [(_samples(workload), small_large(workload)[1])]) for workload in WORKLOADS}


def unseen_batch(model: Model) -> Held:
    """Every mini-batch but the smallest and the largest left out everywhere, the profile included, and predicted."""
    return {workload: _over(model, _batches(workload)) for workload in WORKLOADS}


def pooled(held: Held) -> Errors:
    """All workloads' errors as one."""
    return np.concatenate(list(held.values()))


def repeats() -> Held:
    """How far one run lies from the mean of the other runs of the same mini-batch and layout, on other nodes."""
    return {workload: _repeats(workload) for workload in WORKLOADS}


@dataclass(frozen=True)
class Chosen:
    """The form with the least held-out error on the *other* workloads, and its errors on this one."""

    form: str
    interpolating: Errors
    extrapolating: Errors


def cost(near: Held, far: Held) -> float:
    """What a form is chosen by: the median error interpolating, and extrapolating the mean of the medians of all SIZES.

    Sizes count alike, for how many runs each has is an accident of the data.
    """
    sizes = [float(np.median(errors)) for errors in by_size(far).values()]
    return float(np.median(pooled(near))) + fmean(sizes)


def choose(near: dict[str, Held], far: dict[str, Held]) -> dict[str, Chosen]:
    """The form of each workload, without having looked at it: by its cost on the other three."""
    chosen = {}
    for workload in WORKLOADS:
        costs = {form: cost(_without(workload, near[form]), _without(workload, far[form])) for form in near}
        form = min(costs, key=costs.__getitem__)
        chosen[workload] = Chosen(form, near[form][workload], far[form][workload])
    return chosen


def _without(workload: str, held: Held) -> Held:
    return {other: errors for other, errors in held.items() if other != workload}


def known_network(workload: str) -> Model:
    """Muster where three other jobs have run at all sizes on the same cluster: they say how its network congests."""
    return replace(MUSTER, network=Network.learnt([full_fit(other) for other in WORKLOADS if other != workload]))


@cache
def full_fit(workload: str) -> CalibratedFit:
    """Muster fitted to all runs of a workload."""
    return MUSTER.fit(_samples(workload))


@dataclass(frozen=True)
class Coverage:
    """Of intervals meant to hold 90 %: which runs they hold, of how many GPUs each, and their reach on either side."""

    inside: NDArray[np.bool_]
    gpus: NDArray[np.int_]
    reach: Errors


def coverage(workload: str, *, extrapolating: bool) -> Coverage:
    """Of Muster's intervals around predictions of runs that it never saw."""
    inside, gpus, reach = [], [], []
    for kept, tested in [small_large(workload)] if extrapolating else _folds(workload):
        low, centre, high = Interval.of(MUSTER, kept).predict([sample.configuration for sample in tested])
        measured = np.array([sample.iteration for sample in tested])
        inside.append((low <= measured) & (measured <= high))
        gpus.append([sample.configuration.gpus for sample in tested])
        reach.append((high - low) / 2 / centre)
    return Coverage(np.concatenate(inside), np.concatenate(gpus), np.concatenate(reach))


Split = tuple[list[Sample], list[Sample]]
"""To fit on, to predict."""


def _over(model: Model, splits: Sequence[Split]) -> Errors:
    return np.concatenate([_errors(model.fit(kept), tested) for kept, tested in splits])


def _errors(fitted: Fitted, tested: Sequence[Sample]) -> Errors:
    measured = np.array([sample.iteration for sample in tested])
    errors: Errors = np.abs(fitted.predict([sample.configuration for sample in tested]) / measured - 1)
    return errors


@cache
def _samples(workload: str) -> list[Sample]:
    return [run.sample for run in runs(workload)]


def _folds(workload: str) -> list[Split]:
    samples = _samples(workload)
    placements = sorted({placed(s.configuration) for s in samples if s.configuration.gpus > 1})
    Random(0).shuffle(placements)
    fold = {placement: i % FOLDS for i, placement in enumerate(placements)}
    return [_split(samples, lambda s: fold.get(placed(s.configuration)), i) for i in range(FOLDS)]


def small_large(workload: str) -> Split:
    """Runs on up to SMALL GPUs, and on LARGE and more."""
    samples = _samples(workload)
    return (
        [s for s in samples if s.configuration.gpus <= SMALL],
        [s for s in samples if s.configuration.gpus >= LARGE],
    )


def _batches(workload: str) -> list[Split]:
    samples = _samples(workload)
    alone = sorted(s.configuration.minibatch for s in samples if s.configuration.gpus == 1)
    return [_split(samples, lambda s: s.configuration.minibatch, batch) for batch in alone[1:-1]]


def _split(samples: Sequence[Sample], group: Callable[[Sample], int | None], out: int) -> Split:
    return [s for s in samples if group(s) != out], [s for s in samples if group(s) == out]


def _repeats(workload: str) -> Errors:
    same: dict[tuple[int, tuple[int, ...]], list[float]] = defaultdict(list)
    for run in runs(workload):
        same[run.sample.configuration.minibatch, run.layout].append(run.sample.iteration)
    return np.array(
        [
            abs(fmean(times[:i] + times[i + 1 :]) / time - 1)
            for times in same.values()
            if len(times) > 1
            for i, time in enumerate(times)
        ]
    )
