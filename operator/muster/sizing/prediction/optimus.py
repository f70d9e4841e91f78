"""Optimus's law of a synchronous iteration (Peng et al., EuroSys 2018), made for jobs with parameter servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.sizing.prediction.samples import Columns, Configuration, Sample, times

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats

_NAMES = ("mini-batch", "a constant", "GPUs a server", "GPUs", "servers or nodes")
_SAME = 1e-6
"""A direction of the terms that is this small, of columns of length 1, is not measured."""


@dataclass(frozen=True)
class Optimus:
    """iteration = t_0 M / w + t_1 + t_2 w / p + t_3 w + t_4 p, all t at least 0.

    M is the global batch, w the number of GPUs, p the number of servers; an all-reduce job counts each node as one
    server, for each holds a part of the sum.
    """

    def fit(self, samples: Sequence[Sample]) -> "OptimusFit":
        """By non-negative least squares of the relative error.

        ValueError where samples cannot tell the terms apart: those in which p always equals w have one constant w / p.
        """
        import numpy as np
        from scipy.optimize import nnls

        iteration, _ = times(samples)
        terms = _terms(Columns.of([s.configuration for s in samples])) / iteration[:, None]
        told = int(np.linalg.matrix_rank(terms / np.linalg.norm(terms, axis=0), tol=_SAME))
        if told < len(_NAMES):
            raise ValueError(
                f"Optimus's law has {len(_NAMES)} terms ({', '.join(_NAMES)}) and what was measured tells {told} of"
                " them apart"
            )
        return OptimusFit(tuple(nnls(terms, np.ones_like(iteration))[0].tolist()))


@dataclass(frozen=True)
class OptimusFit:
    """`coefficients`: t_0 to t_4, in seconds."""

    coefficients: tuple[float, ...]

    def predict(self, configurations: Sequence[Configuration]) -> "Floats":
        """Seconds of one iteration at each configuration."""
        import numpy as np

        product: Floats = _terms(Columns.of(configurations)) @ np.array(self.coefficients)
        return product


def _terms(columns: Columns) -> "Floats":
    import numpy as np

    w = columns.gpus
    p = np.where(columns.servers > 0, columns.servers, columns.nodes)
    return np.column_stack([columns.minibatch, np.ones_like(w), w / p, w, p])
