"""Bandwidths as people write them (`10Gbit`, `1.25GB`, `1.25GiB`: per second), converted once, to bytes per second."""

import re
from functools import cache
from typing import Any

PATTERN = r"^[0-9]+(\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?(bit|B)$"
LOWEST_BYTES_PER_SECOND, HIGHEST_BYTES_PER_SECOND = 1e3, 1e13


@cache
def _units() -> Any:
    from pint import UnitRegistry

    return UnitRegistry()


def bytes_per_second(text: str) -> float:
    """Bytes per second of `text`.

    Raises:
        ValueError: not a bandwidth, or outside 8 kbit/s .. 80 Tbit/s, where a slip of units is likelier than such a link.
    """
    if not re.fullmatch(PATTERN, text):
        raise ValueError(
            f"{text!r} is not a bandwidth: write for example 10Gbit, 1250MB, 1.25GB or 1.25GiB (per second)"
        )
    value = float(_units().Quantity(text).to("byte").magnitude)
    if not LOWEST_BYTES_PER_SECOND <= value <= HIGHEST_BYTES_PER_SECOND:
        raise ValueError(
            f"{text} per second is outside 8kbit .. 80Tbit: is the unit right (Gbit is bits, GB is bytes)?"
        )
    return value
