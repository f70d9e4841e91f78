"""Seconds of one iteration for any (mini-batch, workers, servers, placement), with how far they may be off.

A model is fitted to measured iterations and then predicts others: `Calibrated().fit(samples).predict(configurations)`.
The lemmas' own rules need the fewest measurements; Optimus's and Pollux's laws stand beside Muster's for comparison,
and as a choice once a job has run at several sizes. `Interval.of(model, samples)` adds the interval.
"""

from muster.sizing.prediction.calibrated import Calibrated, CalibratedFit, Network
from muster.sizing.prediction.interval import Interval
from muster.sizing.prediction.linear import Linear
from muster.sizing.prediction.optimus import Optimus
from muster.sizing.prediction.pollux import Pollux
from muster.sizing.prediction.rules import Lemma1, Lemma1OwnBatch, Lemma2
from muster.sizing.prediction.samples import Configuration, Fitted, Model, Sample

__all__ = [
    "Calibrated",
    "CalibratedFit",
    "Configuration",
    "Fitted",
    "Interval",
    "Lemma1",
    "Lemma1OwnBatch",
    "Lemma2",
    "Linear",
    "Model",
    "Network",
    "Optimus",
    "Pollux",
    "Sample",
]
