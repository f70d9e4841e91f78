"""From iterations to the points of a report."""

import pytest
from muster_profiler.points import point
from muster_profiler.timing import Cycles, summarise
from profiler.canned import GIB, MS, cycles, outcome, result


def test_overhead_is_natural_less_frozen_and_the_first_after_a_switch_is_dropped():
    found, failure = point(32, outcome(result()))

    assert failure is None
    assert found["computeTime"]["medianNanoseconds"] == 100.02 * MS
    assert found["computeTime"]["cycles"] == 15
    assert found["overheadTime"]["medianNanoseconds"] == 10 * MS
    assert (
        found["overheadTime"]["intervalLowNanoseconds"] <= 10 * MS <= found["overheadTime"]["intervalHighNanoseconds"]
    )
    assert found["overheadParts"] == {
        "loadNanoseconds": 8 * MS,
        "prepareNanoseconds": 2 * MS,
        "updateNanoseconds": 5 * MS,
    }


def test_overhead_below_nothing_is_nothing():
    found, _ = point(32, outcome(result(cycles=cycles(100, 101))))

    assert found["overheadTime"]["medianNanoseconds"] == found["overheadTime"]["intervalLowNanoseconds"] == 0


def test_on_a_gpu_copying_is_told_from_computing():
    found, _ = point(32, outcome(result(cycles=cycles(110, 100, 93))))

    assert found["computeTime"]["medianNanoseconds"] == 93.02 * MS
    assert found["overheadTime"]["medianNanoseconds"] == 17 * MS
    assert found["overheadParts"]["hostToDeviceNanoseconds"] == 7 * MS


def test_iterations_with_an_evaluation_or_a_skipped_step_in_between_do_not_count():
    odd = [("natural", 1, True, 9000 * MS, 5), ("frozen", 2, True, 9000 * MS, 2)]

    found, _ = point(32, outcome(result(cycles=cycles(110, 100) + odd)))

    assert found["computeTime"]["upperQuartileNanoseconds"] < 101 * MS
    assert found["computeTime"]["cycles"] == 15


def test_a_drift_is_called_unsteady():
    drifting = [(*cycle[:3], cycle[3] * (10 + cycle[1]), cycle[4]) for cycle in cycles(110, 100)]

    assert not point(32, outcome(result(cycles=drifting)))[0]["steady"]
    assert point(32, outcome(result()))[0]["steady"]


def test_without_frozen_iterations_all_is_compute():
    found, failure = point(32, outcome(result(cycles=cycles(110, None), frozen=False)))

    assert failure is None
    assert found["computeTime"]["medianNanoseconds"] == 110.02 * MS
    assert found["overheadTime"]["medianNanoseconds"] == 0
    assert "loadNanoseconds" not in found["overheadParts"]


def test_a_script_that_ended_while_warming_up_is_timed_by_the_later_half():
    warm = [("warm", 0, True, 500 * MS, 1)] * 4 + [("warm", 0, True, 100 * MS, 1)] * 5

    found, failure = point(32, outcome(result(cycles=warm, ended="early")))

    assert failure is None
    assert found["computeTime"]["medianNanoseconds"] == 100 * MS


@pytest.mark.scenario("A6")
def test_the_peak_is_the_larger_phase_and_the_margin_stands_apart():
    memory = point(32, outcome(result()))[0]["memory"]

    assert memory["peakBytes"] == 2 * GIB
    assert memory["marginBytes"] == int(0.05 * 2 * GIB)


def test_what_the_allocator_reserves_beyond_the_peak_is_the_margin_if_it_is_more():
    held = {"forwardBackwardBytes": GIB, "optimizerStepBytes": 2 * GIB, "reservedPeakBytes": 3 * GIB}

    memory = point(32, outcome(result(memory=held)))[0]["memory"]

    assert memory["marginBytes"] == int(GIB + 0.02 * 2 * GIB)


@pytest.mark.scenario("A6")
@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        ({"forwardBackwardBytes": 7.9 * GIB}, "needs 8.29 GiB with its margin, of 8.00 GiB"),
        ({"forwardBackwardBytes": 6 * GIB, "outsideBytes": 2 * GIB}, "needs 8.30 GiB with its margin, of 8.00 GiB"),
        ({"forwardBackwardBytes": GIB, "retries": 1}, "no room to spare"),
    ],
)
def test_a_batch_that_ran_but_has_no_room_to_spare_does_not_fit(memory, problem):
    found, failure = point(32, outcome(result(memory=memory)))

    assert not found["fits"]
    assert problem in found["problem"]
    assert failure.reason == "OutOfMemory"
    assert found["computeTime"]["medianNanoseconds"] > 0, "what was measured stays"


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_a_summary_holds_its_order(count):
    timing = summarise([MS * (i + 1) for i in range(count)])
    low, lower, middle, upper, high = (
        timing[f"{name}Nanoseconds"]
        for name in ("intervalLow", "lowerQuartile", "median", "upperQuartile", "intervalHigh")
    )

    assert MS <= lower <= middle <= upper <= count * MS
    assert MS <= low <= middle <= high <= count * MS
    assert timing["cycles"] == count


def test_the_interval_of_the_difference_grows_with_what_lies_between_blocks():
    calm = Cycles(cycles(110, 100)).overhead()
    shaken = [(*cycle[:3], cycle[3] + (cycle[1] % 3) * 20 * MS, cycle[4]) for cycle in cycles(110, 100)]
    wide = Cycles(shaken).overhead()

    def width(timing):
        return timing["intervalHighNanoseconds"] - timing["intervalLowNanoseconds"]

    assert width(wide) > 10 * max(1, width(calm))
