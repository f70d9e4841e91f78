"""Optimus's law of a synchronous iteration (Peng et al., EuroSys 2018), made for jobs with parameter servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.sizing.prediction.samples import Columns, Configuration, Sample, times

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats


@dataclass(frozen=True)
class Optimus:
    """iteration = t_0 M / w + t_1 + t_2 w / p + t_3 w + t_4 p, all t at least 0.

    M is the global batch, w the number of GPUs, p the number of servers; an all-reduce job counts each node as one
    server, for each holds a part of the sum. Samples in which p always equals w cannot tell t_2 from t_1.
    """

    def fit(self, samples: Sequence[Sample]) -> "OptimusFit":
        """By non-negative least squares of the relative error."""
        import numpy as np
        from scipy.optimize import nnls

        iteration, _ = times(samples)
        terms = _terms(Columns.of([s.configuration for s in samples])) / iteration[:, None]
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
