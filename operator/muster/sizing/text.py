"""Numbers for people: units chosen by size, three digits at most."""


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def number(value: float) -> str:
    """`value` without needless zeros: 3, 2.62, 12.5, 350."""
    text = _digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, base: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if abs(value) < base * 0.9995:
            return f"{number(value)} {unit}"
        value /= base
    return f"{number(value)} {units[-1]}"


def seconds(value: float) -> str:
    """A time: µs, ms, s, min or h."""
    if abs(value) >= 5400:
        return f"{number(value / 3600)} h"
    if abs(value) >= 120:
        return f"{number(value / 60)} min"
    if abs(value) < 0.9995:
        return _scaled(value * 1e6, 1000, ("µs", "ms"))
    return f"{number(value)} s"


def size(value: float) -> str:
    """An amount of memory, in binary units."""
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def volume(value: float) -> str:
    """An amount of data on a network, in decimal units."""
    return _scaled(value, 1000, ("B", "kB", "MB", "GB", "TB"))


def bandwidth(bytes_per_second: float) -> str:
    """A link's speed, in bits as networks are named."""
    return _scaled(bytes_per_second * 8, 1000, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def percent(share: float) -> str:
    """A share of one: 78.9 %."""
    return f"{number(share * 100)} %"


def count(amount: int, noun: str) -> str:
    """1 server, 2 servers."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def ordinal(amount: int) -> str:
    """1st, 2nd, 3rd, 9th, 11th."""
    ending = "th" if 10 <= amount % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(amount % 10, "th")
    return f"{amount}{ending}"
