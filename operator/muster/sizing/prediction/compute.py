"""Seconds of compute at any mini-batch, from what one GPU took at a few: the profile, as it is and not as a line.

Between measured mini-batches compute is interpolated, because it need not be a line, nor even rise: cuDNN picks other
algorithms at other sizes. Beyond them it follows the slope of a robust line, from the last measured point.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.sizing.prediction.samples import Sample

if TYPE_CHECKING:
    from muster.sizing.prediction.samples import Floats


@dataclass(frozen=True)
class Profile:
    """Measured mini-batches in rising order, the seconds of each, and the line a + b x that lies nearest to them."""

    minibatches: tuple[float, ...]
    seconds: tuple[float, ...]
    intercept: float
    slope: float

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Profile":
        """From the samples on one GPU, the median at each mini-batch. ValueError without any."""
        from statistics import median

        by_minibatch: dict[int, list[float]] = {}
        for sample in samples:
            if sample.configuration.gpus == 1:
                by_minibatch.setdefault(sample.configuration.minibatch, []).append(
                    sample.iteration - (sample.exposed or 0.0)
                )
        if not by_minibatch:
            raise ValueError("no sample ran on one GPU: a prediction starts from the profile")
        points = sorted((float(minibatch), median(seconds)) for minibatch, seconds in by_minibatch.items())
        minibatches, seconds = zip(*points, strict=True)
        return cls(minibatches, seconds, *_line(minibatches, seconds))

    def at(self, minibatches: "Floats") -> "Floats":
        """Seconds at each mini-batch."""
        import numpy as np

        inside = np.clip(minibatches, self.minibatches[0], self.minibatches[-1])
        beyond = self.slope * (minibatches - inside)
        return np.maximum(np.interp(inside, self.minibatches, self.seconds) + beyond, min(self.seconds) * 1e-3)

    def line(self, minibatches: "Floats") -> "Floats":
        """Seconds at each mini-batch if compute were a line."""
        return self.intercept + self.slope * minibatches


def _line(minibatches: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope, neither below 0, of the least relative squared error; through 0 with a single point."""
    if len(minibatches) == 1:
        return 0.0, seconds[0] / minibatches[0]
    import numpy as np
    from scipy.optimize import nnls

    x, y = np.array(minibatches), np.array(seconds)
    intercept, slope = nnls(np.column_stack([1 / y, x / y]), np.ones_like(y))[0]
    return float(intercept), float(slope)
