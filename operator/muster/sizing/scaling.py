"""Lemma 1: how many GPUs (Zou et al. 2017, arXiv 1709.06622), in both forms and both directions.

Symbols: R is the overhead ratio T_O / T_C, the exposed overhead over the compute time of one mini-batch on one GPU;
alpha the efficiency, speed-up over the number of GPUs G.

Strong form: the global batch is fixed, or every GPU's overhead queues on one shared resource. Compute is divided by G,
the overhead is not: alpha = (1 + R) / (1 + G R).
Weak form: the batch per GPU is fixed and each GPU has its own overhead, so only what grows with G costs efficiency:
alpha = (t_c + t_o(1)) / (t_c + t_o(G)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from muster.sizing.rounding import EPSILON, ceil, floor


def efficiency(gpus: int, ratio: float) -> float:
    """alpha(G) of the strong form."""
    return (1 + ratio) / (1 + gpus * ratio)


def speedup(gpus: int, ratio: float) -> float:
    """S(G) = G alpha(G) of the strong form."""
    return gpus * efficiency(gpus, ratio)


def largest_speedup(ratio: float) -> float:
    """What no number of GPUs exceeds: 1 + 1/R."""
    return math.inf if ratio == 0 else 1 + 1 / ratio


def largest_ratio(target: float, gpus: int) -> float:
    """The overhead ratio up to which `gpus` GPUs keep the efficiency `target`; inf where any ratio does."""
    _check_efficiency(target)
    slack = target * gpus - 1
    return math.inf if slack <= EPSILON else (1 - target) / slack


def largest_gpus(target: float, ratio: float) -> int | None:
    """The most GPUs that keep the efficiency `target`; None: there is no bound.

    Raises:
        ValueError: `target` outside (0, 1].
    """
    _check_efficiency(target)
    if ratio == 0:
        return None
    return max(1, floor((1 + ratio - target) / (target * ratio)))


def fewest_gpus(target: float, ratio: float) -> int | None:
    """The fewest GPUs whose speed-up reaches `target`; None: no number does, `target` >= 1 + 1/R."""
    if target <= 1:
        return 1
    share = 1 - (target - 1) * ratio
    return None if share <= EPSILON else ceil(target / share)


def knee(ratio: float) -> float:
    """G* = 1/R: there half of an iteration is overhead and alpha = (1 + R) / 2."""
    return math.inf if ratio == 0 else 1 / ratio


def relative_cost(gpus: int, ratio: float) -> float:
    """GPU-seconds of the same work on `gpus` GPUs over those on one: G / S(G)."""
    return 1 / efficiency(gpus, ratio)


def _check_efficiency(target: float) -> None:
    if not 0 < target <= 1:
        raise ValueError(f"an efficiency is above 0 and at most 1, not {target:g}")


@dataclass(frozen=True)
class Ratio:
    """An overhead ratio with its interval; `superlinear`: the points ran faster than linear and were clamped to 0."""

    value: float
    low: float
    high: float
    superlinear: bool = False

    def largest_gpus(self, target: float) -> tuple[int | None, int | None]:
        """The fewest and the most that `scaling.largest_gpus` gives within the interval."""
        return largest_gpus(target, self.high), largest_gpus(target, self.low)


def ratio_of_speedup(measured: float, gpus: int) -> Ratio:
    """R from one measured speed-up on `gpus` GPUs.

    Raises:
        ValueError: fewer than 2 GPUs, or no speed-up, which no finite ratio explains.
    """
    if gpus < 2:
        raise ValueError("a speed-up on one GPU says nothing about the overhead: measure on 2 or more")
    if measured <= 1:
        raise ValueError(f"{gpus} GPUs ran {measured:g} times as fast as one: no overhead ratio explains that")
    value = (gpus - measured) / (gpus * (measured - 1))
    return Ratio(max(0.0, value), max(0.0, value), max(0.0, value), superlinear=value < 0)


def fit_ratio(points: Sequence[tuple[int, float]]) -> Ratio:
    """R by least squares from (GPUs, measured speed-up) points, with two standard errors on either side.

    1/S is linear in the serial share f: 1/S - 1/G = f (1 - 1/G), and R = f / (1 - f).
    """
    pairs = [(1 - 1 / gpus, 1 / measured - 1 / gpus) for gpus, measured in points if gpus > 1]
    weight = sum(x * x for x, _ in pairs)
    if not pairs:
        raise ValueError("no point with 2 or more GPUs")
    share = sum(x * y for x, y in pairs) / weight
    if share >= 1:
        raise ValueError("the points show no speed-up: no overhead ratio explains that")
    spread = 0.0
    if len(pairs) > 1:
        residual = sum((y - share * x) ** 2 for x, y in pairs) / (len(pairs) - 1)
        spread = 2 * math.sqrt(residual / weight)

    def ratio(part: float) -> float:
        return math.inf if part >= 1 else max(0.0, part) / (1 - max(0.0, part))

    return Ratio(ratio(share), ratio(share - spread), ratio(share + spread), superlinear=share < 0)


def fit_by_placement(points: Sequence[tuple[int, int, float]]) -> dict[bool, Ratio]:
    """R inside one node (False) and across nodes (True), each from its (GPUs, nodes, speed-up) points.

    One R for both would fit neither: an exchange across nodes can cost several times one inside a node.
    """
    classes: dict[bool, list[tuple[int, float]]] = {}
    for gpus, nodes, measured in points:
        if gpus > 1:
            classes.setdefault(nodes > 1, []).append((gpus, measured))
    return {across: fit_ratio(several) for across, several in classes.items()}


def weak_efficiency(compute: float, overhead_one: float, overhead_many: float) -> float:
    """alpha of the weak form, from times in seconds: a constant overhead costs nothing."""
    return (compute + overhead_one) / (compute + overhead_many)


@dataclass(frozen=True)
class Form:
    """The form of Lemma 1 that fits measured speed-ups: strong with its R, or weak with its flat efficiency."""

    strong: bool
    ratio: Ratio
    flat_efficiency: float
    strong_error: float
    weak_error: float


def fit_form(points: Sequence[tuple[int, float]]) -> Form:
    """Both forms fitted to (GPUs, speed-up) points; the one with the smaller relative error is kept.

    Errors are root mean squares of the relative error of the speed-up. In the weak form the efficiency steps down once,
    when a second GPU makes an exchange necessary, and is flat from there.
    """
    several = [(gpus, measured) for gpus, measured in points if gpus > 1]
    ratio = fit_ratio(several)
    flat = sum(measured / gpus for gpus, measured in several) / len(several)

    def error(predict: "list[float]") -> float:
        squares = [(p / s - 1) ** 2 for p, (_, s) in zip(predict, several, strict=True)]
        return math.sqrt(sum(squares) / len(squares))

    strong_error = error([speedup(gpus, ratio.value) for gpus, _ in several])
    weak_error = error([gpus * flat for gpus, _ in several])
    return Form(strong_error <= weak_error, ratio, flat, strong_error, weak_error)
