"""The predicted figures of a plan, with the interval that the profile's own intervals and the overlap leave."""

from muster.api.status import Prediction
from muster.sizing import text
from muster.sizing.iteration import Model, State
from muster.sizing.rounding import floor, nearest


def prediction(model: Model, state: State) -> Prediction:
    """The status's figures. Shares are rounded down, so that none looks better than it is.

    The interval of the iteration reaches from the profile's shortest times with the exchange hidden behind compute, to
    its longest with nothing hidden, as in a script that exchanges only after compute.
    """
    candidate = model.candidate
    shortest = _scaled(state, candidate.compute_interval[0], candidate.overhead_interval[0], model)
    longest = _scaled(state, candidate.compute_interval[1], candidate.overhead_interval[1], model)
    return Prediction(
        iteration_time_microseconds=nearest(state.iteration * 1e6),
        samples_per_second=nearest(state.samples_per_second),
        efficiency_percent=floor(state.efficiency * 100),
        speedup=text.number(state.speedup),
        iteration_time_low_microseconds=nearest((shortest + max(0.0, state.exchange - state.compute)) * 1e6),
        iteration_time_high_microseconds=nearest((longest + state.exchange) * 1e6),
    )


def _scaled(state: State, compute: float, overhead: float, model: Model) -> float:
    """The state's compute and overhead, moved as one GPU's move within their intervals."""
    candidate = model.candidate
    return state.compute * compute / candidate.compute + (
        state.overhead * overhead / candidate.overhead if candidate.overhead else overhead
    )
