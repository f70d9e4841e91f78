"""Muster sizes distributed training jobs and runs them on Kubernetes, or on this machine.

The one version number of the project stands here; the build, the chart and the command line read it.
"""

__version__ = "0.1.0"
