"""Numbers for people."""

import pytest
from muster.sizing import text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (text.seconds(0.0000123), "12.3 µs"),
        (text.seconds(0.061), "61 ms"),
        (text.seconds(0.99999), "1 s"),
        (text.seconds(90), "90 s"),
        (text.seconds(600), "10 min"),
        (text.seconds(36_000), "10 h"),
        (text.size(17.1 * 2**30), "17.1 GiB"),
        (text.size(1023.9), "1 KiB"),
        (text.volume(102_228_128), "102 MB"),
        (text.bandwidth(1.25e9), "10 Gbit/s"),
        (text.percent(0.789), "78.9 %"),
        (text.number(2.617), "2.62"),
        (text.count(1, "server"), "1 server"),
        (text.count(2, "server"), "2 servers"),
        (text.ordinal(9), "9th"),
        (text.ordinal(11), "11th"),
        (text.ordinal(22), "22nd"),
    ],
)
def test_units_are_chosen_by_size(words, expected):
    assert words == expected
