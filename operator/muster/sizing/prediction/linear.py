"""The guess to beat: an iteration is a line in the mini-batch and in the number of GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.sizing.prediction.samples import Columns, Configuration, Sample, times

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats


@dataclass(frozen=True)
class Linear:
    """iteration = c_0 + c_1 X_mini + c_2 G + c_3 (nodes - 1)."""

    def fit(self, samples: Sequence[Sample]) -> "LinearFit":
        """By least relative squared error."""
        import numpy as np

        iteration, _ = times(samples)
        terms = _terms(Columns.of([s.configuration for s in samples])) / iteration[:, None]
        return LinearFit(tuple(np.linalg.lstsq(terms, np.ones_like(iteration), rcond=None)[0].tolist()))


@dataclass(frozen=True)
class LinearFit:
    """`coefficients`: c_0 to c_3."""

    coefficients: tuple[float, ...]

    def predict(self, configurations: Sequence[Configuration]) -> "Floats":
        """Seconds of one iteration at each configuration."""
        import numpy as np

        product: Floats = _terms(Columns.of(configurations)) @ np.array(self.coefficients)
        return product


def _terms(columns: Columns) -> "Floats":
    import numpy as np

    return np.column_stack([np.ones_like(columns.gpus), columns.minibatch, columns.gpus, columns.nodes - 1])
