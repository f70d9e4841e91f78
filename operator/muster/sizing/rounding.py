"""Whole numbers from real ones. An exact fit must not move by one because a product came out at 3.0000000000000004."""

import math

EPSILON = 1e-9
"""Relative. Far above what rounding does to a double in a few operations, far below what any measurement can tell."""


def ceil(value: float) -> int:
    """The smallest whole number that is not below `value`, where within EPSILON counts as equal."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= EPSILON * max(1.0, abs(value)) else math.ceil(value)


def floor(value: float) -> int:
    """The largest whole number that is not above `value`, where within EPSILON counts as equal."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= EPSILON * max(1.0, abs(value)) else math.floor(value)


def at_most(value: float, bound: float) -> bool:
    """Whether `value` <= `bound`, where within EPSILON counts as equal."""
    return value <= bound + EPSILON * abs(bound)


def nearest(value: float) -> int:
    """The nearest whole number, halves upwards (Python's own round goes to the even one)."""
    return math.floor(value + 0.5)
