"""The life of a TrainingJob. Pure: `decide(observed, now)` returns what to do; nothing here does it."""

from muster.jobs.decide import decide
from muster.jobs.settings import Settings

__all__ = ["Settings", "decide"]
