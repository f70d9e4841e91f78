"""Bandwidths as people write them (`10Gbit`, `1.25GB`, `1.25GiB`: per second), converted once, to bytes per second."""

import re

from muster.api.rules import Rule

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BYTES = {
    prefix + unit: factor * size
    for unit, size in {"bit": 0.125, "B": 1.0}.items()
    for prefix, factor in (_DECIMAL | _BINARY).items()
}
"""Bytes of each unit that may be written."""
_NUMBER = "[0-9]+(?:[.][0-9]+)?"
LOWEST_BYTES_PER_SECOND, HIGHEST_BYTES_PER_SECOND = 1e3, 1e13


def bytes_per_second(text: str) -> float:
    """Bytes per second of `text`.

    Raises:
        ValueError: not a bandwidth, or outside 8 kbit/s .. 80 Tbit/s: a slip of units is likelier than such a link.
    """
    parts = re.fullmatch(f"({_NUMBER})({'|'.join(_BYTES)})", text)
    if not parts:
        raise ValueError(
            f"{text!r} is not a bandwidth: write for example 10Gbit, 1250MB, 1.25GB or 1.25GiB (per second)"
        )
    value = float(parts[1]) * _BYTES[parts[2]]
    if not LOWEST_BYTES_PER_SECOND <= value <= HIGHEST_BYTES_PER_SECOND:
        raise ValueError(
            f"{text} per second is outside 8kbit .. 80Tbit: is the unit right (Gbit is bits, GB is bytes)?"
        )
    return value


def _is_bandwidth(text: str) -> bool:
    try:
        return bytes_per_second(text) > 0
    except ValueError:
        return False


_TABLE = ", ".join(f"'{unit}': {size!r}" for unit, size in _BYTES.items())
BANDWIDTH = Rule(
    "write a bandwidth of 8kbit to 80Tbit, for example 10Gbit, 1250MB, 1.25GB or 1.25GiB "
    "(per second; Gbit is bits, GB is bytes)",
    cel=f"self.matches('^{_NUMBER}({'|'.join(_BYTES)})$') && "
    f"[double(self.find('^{_NUMBER}')) * {{{_TABLE}}}[self.find('[A-Za-z]+$')]]"
    f".all(rate, {LOWEST_BYTES_PER_SECOND:.1f} <= rate && rate <= {HIGHEST_BYTES_PER_SECOND:.1f})",
    holds=_is_bandwidth,
)
