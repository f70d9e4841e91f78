"""How much of an exchange can hide behind compute: the windows, and the layer-wise recurrence.

Lemma 2 lets an exchange hide behind all of T_C, as with parameters one step stale or a layer-wise exchange in both
passes. A script that sends each layer's gradient as soon as its backward pass is done, and pulls before the next
forward pass, has only the backward pass, about two thirds. A script that exchanges after compute hides nothing.
"""

from collections.abc import Sequence
from itertools import accumulate

WHOLE_ITERATION = 1.0
BACKWARD_PASS = 2 / 3
NOTHING = 0.0


def unhidden_efficiency(compute: float, exchange: float) -> float:
    """alpha where nothing hides: T_C / (T_C + T_comm)."""
    return compute / (compute + exchange)


def layerwise_iteration(forward: Sequence[float], backward: Sequence[float], exchange: Sequence[float]) -> float:
    """Seconds of an iteration whose layers exchange one after another, each once its backward pass is done.

    Layers are ordered from the input, times in seconds. tau_b(l) is when layer l's backward pass begins, tau_c(l) when
    its exchange does: not before the exchange of the layer behind it ends, nor before its own gradient is there.
    """
    if not len(forward) == len(backward) == len(exchange):
        raise ValueError("as many forward, backward and exchange times as there are layers")
    ready = list(accumulate(reversed(backward), initial=sum(forward)))[1:]
    link_free = 0.0
    for gradient, seconds in zip(ready, reversed(exchange), strict=True):
        link_free = max(link_free, gradient) + seconds
    return max([link_free, *ready[-1:]])
