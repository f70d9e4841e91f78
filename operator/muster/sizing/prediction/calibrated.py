"""Muster's own law of an iteration: the lemmas with what measurements add to them.

    iteration = phi C + (((1 - phi) C)^g + X^g)^(1/g)             soft maximum: nothing hides behind the forward pass
    C = T_C(X_mini) (1 + s h(G))                                  the slowest of G GPUs is waited for
    X = x_kind volumes exp(c_2 [2 nodes] + c_G ln G + c_d ln densest)       the exchange; the exponent is its congestion
    X = max(x_server 2 N_w / N_ps, x_worker 2)                    with parameter servers: Lemma 2 and its rule 3

T_C is the profile. x_kind, the seconds that the busiest link takes for the parameters' bytes, is S_p / B of Lemma 2,
one for each kind of placement. The c are drawn to 0, or to what other jobs taught of the same cluster's network, so
that few samples give a cautious answer. Which of the terms are kept is decided by held-out error, in
benchmarks/science.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from muster.sizing.prediction.compute import Profile
from muster.sizing.prediction.samples import (
    ALONE,
    SERVERS,
    SEVERAL_NODES,
    Columns,
    Configuration,
    Sample,
    require,
    times,
)

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats

Congestion = Literal["twoNodes", "gpus", "densest", "nodes"]

_OUTLIER = 0.1
"""Logarithmic error from which a sample's pull grows no further (soft L1)."""
_LARGEST_G = 10.0
"""Where the soft maximum is as good as hard."""
_FLOOR = 1e-12


@dataclass(frozen=True)
class Network:
    """What to expect of the congestion exponents, each with the same standard deviation."""

    expected: Mapping[Congestion, float] = field(default_factory=dict)
    deviation: float = 0.1

    @classmethod
    def learnt(cls, fits: "Sequence[CalibratedFit]", deviation: float = 0.1) -> "Network":
        """From jobs that ran at many sizes on the same cluster: the mean of their exponents."""
        names = {name for fit in fits for name in fit.congestion}
        return cls(
            {name: sum(fit.congestion.get(name, 0.0) for fit in fits) / len(fits) for name in sorted(names)}, deviation
        )


@dataclass(frozen=True)
class Calibrated:
    """The law's form. What each field may be is what the benchmark chose from; the defaults are what it chose.

    `unhidden`: phi, the share of compute behind which nothing can hide. `softness`: g, None to fit it. `straggling`:
    h(G), ln G, or 1 - 1/G, which saturates. `affine`: a constant cost of the exchange beside that of its volume.
    `measured_compute`: T_C as the profile has it, not as a line.
    """

    congestion: tuple[Congestion, ...] = ("twoNodes", "gpus", "densest")
    straggling: Literal["log", "saturating", "none"] = "log"
    unhidden: float = 1 / 3
    softness: float | None = None
    affine: bool = False
    measured_compute: bool = True
    network: Network = field(default_factory=Network)

    def fit(self, samples: Sequence[Sample]) -> "CalibratedFit":
        """By the robust logarithmic error of the iteration. ValueError without a sample on one GPU."""
        import numpy as np
        from scipy.optimize import least_squares

        profile, columns = Profile.of(samples), Columns.of([s.configuration for s in samples])
        iteration, _ = times(samples)
        kinds = tuple(sorted(set(columns.placement.tolist()) - {ALONE}))
        scale = float(np.median(iteration))
        law = _Law(self, profile, kinds, scale)
        predict = law.at(columns)
        expected = np.array([self.network.expected.get(name, 0.0) for name in self.congestion])
        exponents = slice(2, 2 + len(self.congestion))

        def residuals(q: "Floats") -> "Floats":
            surprise = (q[exponents] - expected) / self.network.deviation
            return np.concatenate([np.log(predict(q) / iteration), surprise])

        start, low, high = law.start()
        found = least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=_OUTLIER, max_nfev=100)
        return CalibratedFit(law, tuple(found.x.tolist()))


@dataclass(frozen=True)
class CalibratedFit:
    """A calibrated law. `parameters`: s, g, the congestion exponents, then the logarithms of the costs of each kind."""

    law: "_Law"
    parameters: tuple[float, ...]

    @property
    def congestion(self) -> dict[Congestion, float]:
        """The exponents by name: what another job on the same network can expect."""
        return dict(zip(self.law.form.congestion, self.parameters[2:], strict=False))

    @property
    def softness(self) -> float:
        """g: 1 where exchange follows compute, 10 where all of it hides that can."""
        return self.law.form.softness or self.parameters[1]

    def predict(self, configurations: Sequence[Configuration]) -> "Floats":
        """Seconds of one iteration at each configuration."""
        import numpy as np

        columns = Columns.of(configurations)
        require(np.array(self.law.kinds), columns.placement)
        return self.law.at(columns)(np.array(self.parameters))


@dataclass(frozen=True)
class _Law:
    """The formulas, given a form, a profile and the kinds of placement that were measured (`scale`: seconds)."""

    form: Calibrated
    profile: Profile
    kinds: tuple[int, ...]
    scale: float

    def start(self) -> "tuple[Floats, Floats, Floats]":
        """Where the search begins, and its bounds."""
        import numpy as np

        exponents = len(self.form.congestion)
        costs = sum(self._costs(kind) for kind in self.kinds)
        start = [0.02, 3.0, *[0.0] * exponents, *[-1.5] * costs]
        low = [0.0, 1.0, *[-3.0] * exponents, *[-12.0] * costs]
        high = [2.0, _LARGEST_G, *[3.0] * exponents, *[6.0] * costs]
        return np.array(start), np.array(low), np.array(high)

    def at(self, columns: Columns) -> "Callable[[Floats], Floats]":
        """Seconds at each row, as a function of the parameters: what does not depend on them is computed once."""
        import numpy as np

        alone = (self.profile.at if self.form.measured_compute else self.profile.line)(columns.minibatch)
        wait = _STRAGGLING[self.form.straggling](columns)
        exchange = self._exchange(columns)

        def iteration(q: "Floats") -> "Floats":
            compute = alone * (1 + q[0] * wait)
            forward, backward = self.form.unhidden * compute, (1 - self.form.unhidden) * compute
            softness = self.form.softness or float(q[1])
            seconds: Floats = forward + _soft_maximum(backward, np.maximum(exchange(q[2:]), _FLOOR), softness)
            return seconds

        return iteration

    def _exchange(self, columns: Columns) -> "Callable[[Floats], Floats]":
        import numpy as np

        names, placement, volumes = self.form.congestion, columns.placement, columns.volumes
        terms = np.column_stack([_CONGESTION[name](columns) for name in names] or [np.zeros_like(volumes)])
        masks = {kind: placement == kind for kind in self.kinds}

        def exchange(q: "Floats") -> "Floats":
            costs = iter(self.scale * np.exp(q[len(names) :]))
            congestion = np.exp(terms @ q[: len(names)]) if names else 1.0
            seconds = np.zeros_like(volumes)
            for kind, mask in masks.items():
                if kind == SERVERS:
                    cost = np.maximum(next(costs) * volumes, next(costs) * 2)
                elif kind == SEVERAL_NODES and self.form.affine:
                    cost = (next(costs) * volumes + next(costs)) * congestion
                else:
                    cost = next(costs) * volumes * congestion
                seconds = np.where(mask, cost, seconds)
            return seconds

        return exchange

    def _costs(self, kind: int) -> int:
        return 2 if kind == SERVERS or (kind == SEVERAL_NODES and self.form.affine) else 1


def _soft_maximum(left: "Floats", right: "Floats", softness: float) -> "Floats":
    """(left^g + right^g)^(1/g), without overflow; both above 0."""
    import numpy as np

    larger, ratio = np.maximum(left, right), np.minimum(left, right) / np.maximum(left, right)
    soft: Floats = larger * (1 + ratio**softness) ** (1 / softness)
    return soft


def _log(values: "Floats") -> "Floats":
    import numpy as np

    logarithms: Floats = np.log(values)
    return logarithms


_STRAGGLING: "Mapping[str, Callable[[Columns], Floats]]" = {
    "log": lambda columns: _log(columns.gpus),
    "saturating": lambda columns: 1 - 1 / columns.gpus,
    "none": lambda columns: 0 * columns.gpus,
}
_CONGESTION: "Mapping[Congestion, Callable[[Columns], Floats]]" = {
    "twoNodes": lambda columns: 1.0 * (columns.nodes == 2),
    "gpus": lambda columns: _log(columns.gpus),
    "densest": lambda columns: _log(columns.densest),
    "nodes": lambda columns: _log(columns.nodes),
}
