"""How far a prediction may be off, from the samples themselves: no assumption on how their errors are distributed.

The placements are dealt into groups and each group is predicted by a fit without it. The errors of those predictions
say how far one iteration lies from the law; how much the fits disagree (their jackknife variance) says how little the
samples pin down the law where it is asked, which grows by itself beyond the measured sizes. The two add up as
variances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.sizing.prediction.samples import Columns, Configuration, Fitted, Model, Sample

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats

FEW = 20
"""Held-out errors below which there is no telling their tails: then the largest counts, to both sides."""

Placed = tuple[int, int, int, int]
"""Nodes, GPUs, GPUs on the fullest node, servers: samples that share them share their luck with the network."""


@dataclass(frozen=True)
class Interval:
    """A fit, its rivals that each lack a group of samples, and the held-out logarithmic errors in rising order."""

    fitted: Fitted
    rivals: tuple[Fitted, ...]
    errors: tuple[float, ...]

    @classmethod
    def of(cls, model: Model, samples: Sequence[Sample], groups: int = 10) -> "Interval":
        """Fit `groups` + 1 times. ValueError with fewer than three placements beyond one GPU, or no two of one kind."""
        import numpy as np

        placements = sorted({placed(s.configuration) for s in samples if s.configuration.gpus > 1})
        if len(placements) < 3:
            raise ValueError(
                f"{len(placements)} placements beyond one GPU are too few to tell how far a prediction is off"
            )
        dealt = {placement: i % groups for i, placement in enumerate(placements)}
        fitted = model.fit(samples)
        rivals: list[Fitted] = []
        errors: list[float] = []
        for group in range(min(groups, len(placements))):
            left_out = [dealt.get(placed(s.configuration)) == group for s in samples]
            kept = [s for s, out in zip(samples, left_out, strict=True) if not out]
            tested = [s for s, out in zip(samples, left_out, strict=True) if out]
            if _kinds(tested) - _kinds(kept):  # the group was the only one of its kind of placement
                continue
            rivals.append(_without(model, kept))
            predicted = rivals[-1].predict([s.configuration for s in tested])
            errors += np.log(np.array([s.iteration for s in tested]) / predicted).tolist()
        if not errors:
            raise ValueError("every placement is the only one of its kind: none can be left out and predicted")
        return cls(fitted, tuple(rivals), tuple(sorted(errors)))

    @property
    def held_out_error(self) -> float:
        """The mean relative error of what each fit without a group predicted for that group."""
        import numpy as np

        return float(np.mean(np.abs(np.expm1(-np.array(self.errors)))))

    def predict(
        self, configurations: Sequence[Configuration], coverage: float = 0.9
    ) -> "tuple[Floats, Floats, Floats]":
        """Low end, prediction, high end in seconds, meant to hold `coverage` of all iterations."""
        import numpy as np

        centre = np.log(self.fitted.predict(configurations))
        apart = np.array([np.log(rival.predict(configurations)) for rival in self.rivals])
        count = len(self.rivals)
        spread = (count - 1) / count * ((apart - apart.mean(axis=0)) ** 2).sum(axis=0)
        below, above = np.quantile(self.errors, [(1 - coverage) / 2, (1 + coverage) / 2])
        if len(self.errors) < FEW:
            above = float(np.max(np.abs(self.errors)))
            below = -above
        typical = max((above - below) / 2, 1e-9)
        widen = np.sqrt(1 + spread * (_normal(coverage) / typical) ** 2)
        return np.exp(centre + min(below, 0.0) * widen), np.exp(centre), np.exp(centre + max(above, 0.0) * widen)


def placed(configuration: Configuration) -> Placed:
    """What of a configuration is its placement, whatever its mini-batch."""
    return configuration.nodes, configuration.gpus, configuration.densest, configuration.servers


def _without(model: Model, kept: Sequence[Sample]) -> Fitted:
    try:
        return model.fit(kept)
    except ValueError as error:
        raise ValueError(f"with a placement left out as a test, {error}") from None


def _kinds(samples: Sequence[Sample]) -> set[int]:
    return set(Columns.of([s.configuration for s in samples]).placement.tolist())


def _normal(coverage: float) -> float:
    """Standard deviations on either side of the mean that hold `coverage` of a normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + coverage) / 2)
