"""Other ways to run the same job, each with its prediction: without servers, with one server more or less."""

from muster.api.status import Alternative
from muster.sizing.problem import Decision, Problem


def alternatives(problem: Problem, decision: Decision) -> list[Alternative]:
    """At the planned mini-batch and number of workers."""
    del problem, decision
    return []
