"""The paper's two lemmas read as predictions, with nothing fitted but what they themselves leave to be measured.

Lemma 1 needs the overhead ratio R, Lemma 2 the seconds that a link takes for the parameters' bytes: one number for each
kind of placement, because a measurement on one node says nothing about a network.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from muster.sizing.prediction.compute import Profile
from muster.sizing.prediction.samples import ALONE, Columns, Configuration, Sample, require, times

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats


@dataclass(frozen=True)
class Lemma1:
    """iteration(G) = t_1 (1 + G R) / (G (1 + R)), t_1 the time that one GPU would take for the whole global batch."""

    def fit(self, samples: Sequence[Sample]) -> "Rule":
        """R of each placement, by f = R / (1 + R), in which the iteration is linear."""
        return _fit(samples, base=_shared_batch, unit=_serial_share)


@dataclass(frozen=True)
class Lemma1OwnBatch:
    """iteration = T_C + T_O: the weak form, in which every GPU has a batch and an overhead of its own."""

    def fit(self, samples: Sequence[Sample]) -> "Rule":
        """T_O of each placement."""
        return _fit(samples, base=_compute, unit=_constant)


@dataclass(frozen=True)
class Lemma2:
    """The exchange as the busiest link sees it, behind compute (`max`) or after it (`sum`)."""

    overlap: Literal["max", "sum"] = "max"

    def fit(self, samples: Sequence[Sample]) -> "Rule":
        """Seconds that a link takes for the parameters' bytes, of each placement."""
        return _fit(samples, base=_compute, unit=_volumes, hidden=self.overlap == "max")


Term = Callable[[Profile, Columns], "Floats"]


@dataclass(frozen=True)
class Rule:
    """iteration = base + c unit, or the larger of the two; `cost` has c by placement."""

    profile: Profile
    base: Term
    unit: Term
    hidden: bool
    cost: Mapping[int, float]

    def predict(self, configurations: Sequence[Configuration]) -> "Floats":
        """Seconds of one iteration at each configuration."""
        import numpy as np

        columns = Columns.of(configurations)
        require(np.array(list(self.cost)), columns.placement)
        cost = np.array([self.cost.get(kind, 0.0) for kind in columns.placement.tolist()])
        base, rest = self.base(self.profile, columns), cost * self.unit(self.profile, columns)
        return np.maximum(base, rest) if self.hidden else base + rest


def _fit(samples: Sequence[Sample], base: Term, unit: Term, hidden: bool = False) -> Rule:
    """One cost a placement, that of the least relative squared error (by search where it is not linear)."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    profile, columns = Profile.of(samples), Columns.of([s.configuration for s in samples])
    iteration, _ = times(samples)
    t, u = base(profile, columns), unit(profile, columns)
    costs: dict[int, float] = {}
    for kind in sorted(set(columns.placement.tolist()) - {ALONE}):
        here = columns.placement == kind
        x, y = u[here] / iteration[here], 1 - t[here] / iteration[here]
        costs[kind] = max(0.0, float(x @ y) / float(x @ x))
        if hidden:
            most = float(np.max(iteration[here] / u[here]))
            found = minimize_scalar(
                lambda c, t=t[here], u=u[here], y=iteration[here]: float(np.mean((np.maximum(t, c * u) / y - 1) ** 2)),
                bounds=(0.0, most),
                method="bounded",
            )
            costs[kind] = float(found.x)
    return Rule(profile, base, unit, hidden, costs)


def _compute(profile: Profile, columns: Columns) -> "Floats":
    return profile.at(columns.minibatch)


def _constant(_: Profile, columns: Columns) -> "Floats":
    import numpy as np

    return np.ones_like(columns.gpus)


def _volumes(_: Profile, columns: Columns) -> "Floats":
    return columns.volumes


def _whole(profile: Profile, columns: Columns) -> "Floats":
    """One GPU's time for the global batch, which is beyond the profile: from its line."""
    return profile.at(columns.minibatch * columns.gpus)


def _shared_batch(profile: Profile, columns: Columns) -> "Floats":
    return _whole(profile, columns) / columns.gpus


def _serial_share(profile: Profile, columns: Columns) -> "Floats":
    return _whole(profile, columns) * (1 - 1 / columns.gpus)
