"""Muster's own law of an iteration: the lemmas with what measurements add to them.

    iteration = phi C + (((1 - phi) C)^g + X^g)^(1/g)             soft maximum: nothing hides behind the forward pass
    C = T_C(X_mini) (1 + s h(G))                                  the slowest of G GPUs is waited for
    X = x_kind volumes exp(c_2 [2 nodes] + c_G ln G + c_d ln densest)       the exchange; the exponent is its congestion
    X = max(x_server 2 N_w / N_ps, x_worker 2)                    with parameter servers: Lemma 2 and its rule 3

T_C is the profile. x_kind, the seconds that the busiest link takes for the parameters' bytes, is S_p / B of Lemma 2,
one for each kind of placement. The c are drawn to 0, or to what other jobs taught of the same cluster's network, so that
few samples give a cautious answer. Which of the terms are kept is decided by held-out error in benchmarks/science.py.
"""

from collections.abc import Mapping, Sequence
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
    deviation: float = 0.3

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
        expected = np.array([self.network.expected.get(name, 0.0) for name in self.congestion])
        exponents = slice(2, 2 + len(self.congestion))

        def residuals(q: "Floats") -> "Floats":
            surprise = (q[exponents] - expected) / self.network.deviation
            return np.concatenate([np.log(law.iteration(q, columns) / iteration), surprise])

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
        return self.law.iteration(np.array(self.parameters), columns)


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

    def iteration(self, q: "Floats", columns: Columns) -> "Floats":
        """Seconds."""
        import numpy as np

        softness = self.form.softness or q[1]
        compute = self._compute(q[0], columns)
        forward, backward = self.form.unhidden * compute, (1 - self.form.unhidden) * compute
        exchange = np.maximum(self._exchange(q[2:], columns), _FLOOR)
        larger = np.maximum(backward, exchange)
        soft: Floats = larger * ((backward / larger) ** softness + (exchange / larger) ** softness) ** (1 / softness)
        return forward + soft

    def _compute(self, straggling: float, columns: Columns) -> "Floats":
        import numpy as np

        curve = self.profile.at if self.form.measured_compute else self.profile.line
        match self.form.straggling:
            case "log":
                wait = np.log(columns.gpus)
            case "saturating":
                wait = 1 - 1 / columns.gpus
            case "none":
                wait = np.zeros_like(columns.gpus)
        return curve(columns.minibatch) * (1 + straggling * wait)

    def _exchange(self, q: "Floats", columns: Columns) -> "Floats":
        import numpy as np

        terms = {
            "twoNodes": columns.nodes == 2,
            "gpus": np.log(columns.gpus),
            "densest": np.log(columns.densest),
            "nodes": np.log(columns.nodes),
        }
        names = self.form.congestion
        congestion = np.exp(sum((q[i] * terms[name] for i, name in enumerate(names)), np.zeros_like(columns.gpus)))
        exchange, costs = np.zeros_like(columns.gpus), self.scale * np.exp(q[len(names) :])
        for kind in self.kinds:
            mine, costs = costs[: self._costs(kind)], costs[self._costs(kind) :]
            if kind == SERVERS:
                cost = np.maximum(mine[0] * columns.volumes, mine[1] * 2)
            else:
                cost = (mine[0] * columns.volumes + mine[1:].sum()) * congestion
            exchange = np.where(columns.placement == kind, cost, exchange)
        return exchange

    def _costs(self, kind: int) -> int:
        return 2 if kind == SERVERS or (kind == SEVERAL_NODES and self.form.affine) else 1
