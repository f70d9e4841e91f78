"""Pollux's law of an iteration (Qiao et al., OSDI 2021), made for all-reduce jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.sizing.prediction.samples import (
    ALONE,
    ONE_NODE,
    SERVERS,
    Columns,
    Configuration,
    Sample,
    require,
    times,
)

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats

_PULL_TO_SUM, _PULL_TO_FLAT = 1e-3, 1e-2
"""How strongly g is drawn to 1 and the growths to 0, against the mean squared error: weak, so that little data is read
as optimistically as Pollux means it to be."""


@dataclass(frozen=True)
class Pollux:
    """iteration = (T_grad^g + T_sync^g)^(1/g), 1 <= g <= 10, T_grad = a + b X_mini.

    T_sync is 0 on one GPU, a_r + b_r (K - 2) with K GPUs on one node, and a_n + b_n (K - 2) on several.
    """

    def fit(self, samples: Sequence[Sample]) -> "PolluxFit":
        """By the least squared logarithmic error of the iteration and of its compute, as Pollux does."""
        import numpy as np
        from scipy.optimize import least_squares

        columns = Columns.of([s.configuration for s in samples])
        _no_servers(columns)
        iteration, exposed = times(samples)
        computing, told_apart = iteration - exposed, ~np.isnan(exposed)
        scale, weight = float(np.median(iteration)), float(np.sqrt(len(samples)))
        start = np.log([scale / 2, scale / 2 / float(np.median(columns.minibatch)), *[scale / 10, scale / 100] * 2])

        def residuals(q: "Floats") -> "Floats":
            gradient, whole = _law(q, columns)
            pull = [
                weight * _PULL_TO_SUM**0.5 * (q[6] - 1),
                weight * _PULL_TO_FLAT**0.5 * np.exp(q[3] - q[2]),
                weight * _PULL_TO_FLAT**0.5 * np.exp(q[5] - q[4]),
            ]
            return np.concatenate([np.log(whole / iteration), np.log(gradient / computing)[told_apart], pull])

        found = least_squares(
            residuals, [*start, 2.0], bounds=([-30.0] * 6 + [1.0], [5.0] * 6 + [10.0]), x_scale="jac", max_nfev=200
        )
        return PolluxFit(tuple(found.x.tolist()), tuple(sorted(set(columns.placement.tolist()))))


@dataclass(frozen=True)
class PolluxFit:
    """`parameters`: the logarithms of a, b, a_r, b_r, a_n, b_n, and g; `placements`: the kinds that were measured."""

    parameters: tuple[float, ...]
    placements: tuple[int, ...]

    def predict(self, configurations: Sequence[Configuration]) -> "Floats":
        """Seconds of one iteration at each configuration."""
        import numpy as np

        columns = Columns.of(configurations)
        _no_servers(columns)
        require(np.array(self.placements), columns.placement)
        return _law(np.array(self.parameters), columns)[1]


def _law(q: "Floats", columns: Columns) -> "tuple[Floats, Floats]":
    """T_grad and the iteration."""
    import numpy as np

    a, b, a_r, b_r, a_n, b_n = np.exp(q[:6])
    beyond = np.maximum(columns.gpus - 2, 0)
    kind = columns.placement
    sync = np.where(kind == ALONE, 0.0, np.where(kind == ONE_NODE, a_r + b_r * beyond, a_n + b_n * beyond))
    gradient = a + b * columns.minibatch
    larger = np.maximum(gradient, sync)
    return gradient, larger * ((gradient / larger) ** q[6] + (sync / larger) ** q[6]) ** (1 / q[6])


def _no_servers(columns: Columns) -> None:
    if (columns.placement == SERVERS).any():
        raise ValueError("Pollux's law knows no parameter servers")
