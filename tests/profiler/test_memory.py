"""Memory: the two lines of the phases, and the limits of the cgroup, versions 1 and 2."""

import subprocess
import sys

import pytest
from muster_profiler import host
from muster_profiler.memory import Peaks
from profiler.conftest import PROFILER


def measured(batch, forward_backward, step):
    return {"miniBatch": batch, "memory": {"forwardBackwardBytes": forward_backward, "optimizerStepBytes": step}}


def estimated(forward_backward, step):
    return {"forwardBackwardBytes": forward_backward, "optimizerStepBytes": step}


def test_the_peak_is_the_larger_of_two_lines():
    peaks = Peaks([measured(1, 110, 500), measured(2, 120, 500), measured(8, 180, 500)])

    assert [peaks.peak(batch) for batch in (4, 40, 64)] == [500, 500, 740]


def test_a_single_line_through_small_batches_would_have_been_far_too_low():
    points = [measured(1, 110, 500), measured(2, 120, 500)]

    assert Peaks(points).peak(200) == 2100


def test_fewer_than_two_batches_predict_nothing():
    assert Peaks([measured(1, 110, 500)]).peak(2) is None
    assert Peaks([{"miniBatch": 1}, {"miniBatch": 2, "memory": {"peakBytes": 3}}]).peak(4) is None
    assert Peaks([measured(1, 110, 500)]).largest(1000, cap=64) is None


def test_with_an_estimate_one_measured_batch_is_enough():
    peaks = Peaks([measured(8, 1080, 1500)], {8: estimated(90, 20), 16: estimated(170, 20), 64: estimated(650, 20)})

    assert [peaks.peak(batch) for batch in (16, 32, 64, 128)] == [1500, 1500, 1640, 2280]
    assert peaks.peak(4) == 1500


@pytest.mark.parametrize("growth", [1, 20, 1000])
def test_where_two_were_measured_no_estimate_overrules_them(growth):
    estimates = {8: estimated(8 * growth, 0), 16: estimated(16 * growth, 0)}
    peaks = Peaks([measured(8, 1000, 0), measured(16, 1160, 0)], estimates)

    assert peaks.peak(32) == 1480


def test_the_largest_batch_within_a_limit():
    peaks = Peaks([measured(8, 180, 500), measured(16, 260, 500)])

    assert [peaks.largest(limit, cap=1000) for limit in (499, 500, 509, 510, 740)] == [0, 40, 40, 41, 64]
    assert peaks.largest(1e9, cap=1000) == 1000


@pytest.mark.parametrize(
    ("membership", "files", "limit", "used"),
    [
        ("0::/", {"memory.max": "1000\n", "memory.stat": "anon 300\nfile 500\n"}, 1000, 300),
        (
            "0::/pod/box",
            {"pod/memory.max": "900", "pod/box/memory.max": "max", "pod/box/memory.stat": "anon 7"},
            900,
            7,
        ),
        (
            "4:memory:/pod\n0::/",
            {"memory/pod/memory.limit_in_bytes": "800", "memory/pod/memory.stat": "total_rss 5"},
            800,
            5,
        ),
        (
            "4:cpu,memory:/gone",
            {"memory/memory.limit_in_bytes": "700", "memory/memory.stat": "cache 1\ntotal_rss 6"},
            700,
            6,
        ),
        ("0::/../../sibling", {"memory.max": "600"}, 600, None),
    ],
    ids=["v2", "v2 nested", "v1", "v1 seen at the root", "outside the namespace"],
)
def test_the_limit_is_the_smallest_on_the_way_up(tmp_path, membership, files, limit, used):
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    places = str(tmp_path / "cgroup"), str(tmp_path / "membership")
    assert host.memory_limit(*places) == limit
    assert host.memory_used(*places) == used


def test_without_a_limit_it_is_the_machine_s_memory(tmp_path):
    unlimited = host.memory_limit(str(tmp_path), str(tmp_path / "none"))

    assert unlimited > 1 << 28
    assert host.memory_limit() <= unlimited


PEAKS = """
from muster_profiler import host

host.restart_peak()
before = host.peak()
held = bytearray(64 << 20)
held[::4096] = b"x" * len(held[::4096])
high = host.peak()
del held
host.restart_peak()
print(before, high, host.peak())
"""


def test_a_peak_is_seen_and_forgotten_again():
    """In a process of its own: this one's children, whose memory counts too, come and go."""
    alone = [sys.executable, "-c", PEAKS]
    done = subprocess.run(alone, env={"PYTHONPATH": str(PROFILER)}, capture_output=True, text=True, check=True)
    before, high, after = map(int, done.stdout.split())

    assert high - before > 48 << 20
    assert after < high - (32 << 20)
