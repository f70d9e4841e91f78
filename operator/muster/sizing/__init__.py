"""The science: from a profile to a plan. Pure Python; no Kubernetes, no clock, no I/O.

The method is that of *Distributed Training Large-Scale Deep Architectures* (Zou et al., 2017, arXiv 1709.06622).
"""

from muster.sizing.curves import Curves, curves
from muster.sizing.measured import CannotFit, plan_measured
from muster.sizing.planner import plan
from muster.sizing.request import Infeasible, Limits

__all__ = ["CannotFit", "Curves", "Infeasible", "Limits", "curves", "plan", "plan_measured"]
