"""The agent against a framework and a script that are made up, on a clock that is: what it times, when it changes over,
and how it ends. This also stands for a GPU, whose framework has a place of its own for batches."""

import json

import pytest
from muster_profiler import trial
from muster_profiler.agent import Agent, Stop
from muster_profiler.points import point
from muster_profiler.stages import within
from profiler.canned import MS, outcome
from profiler.made_up import Device, Script, Source


def test_compute_overhead_and_update_are_told_apart_to_the_nanosecond(made):
    script, result = made()
    script.train()

    found, _ = point(4, outcome(result()))

    assert found["computeTime"]["medianNanoseconds"] == 112 * MS
    assert found["overheadTime"]["medianNanoseconds"] == 10 * MS
    assert found["overheadParts"]["updateNanoseconds"] == 5 * MS
    assert found["memory"] == {
        "forwardBackwardBytes": 900,
        "optimizerStepBytes": 700,
        "peakBytes": 900,
        "marginBytes": 45,
    }


def test_on_a_device_with_memory_of_its_own_copying_is_overhead(made):
    script, result = made(Device(has_memory_of_its_own=True))
    script.train()

    found, _ = point(4, outcome(result()))

    assert found["computeTime"]["medianNanoseconds"] == 105 * MS
    assert found["overheadTime"]["medianNanoseconds"] == 17 * MS
    assert found["overheadParts"]["hostToDeviceNanoseconds"] == 7 * MS


def test_batches_lie_on_the_device_before_the_first_iteration_with_them_is_timed(made):
    script, result = made(Device(has_memory_of_its_own=True))
    script.device.first_copy = 1000 * MS
    script.train()

    assert {cycle[3] for cycle in result()["cycles"] if cycle[0] == "resident"} == {105 * MS}


@pytest.mark.parametrize(("epochs", "prefetched"), [(1, 0), (2, 0), (2, 4), (4, 16)])
def test_a_script_of_few_iterations_has_room_for_all_stages(made, monkeypatch, epochs, prefetched):
    monkeypatch.setattr(Source, "prefetched", prefetched)
    script, result = made(seconds=1e6, **within(epochs * 50 - 1, prefetched))
    script.train(epochs)

    modes = [cycle[0] for cycle in result()["cycles"]]
    assert {"natural", "frozen", "memory"} <= set(modes)
    assert modes.count("natural") >= 10
    assert "optimizerStepBytes" in result()["memory"]


def test_batches_that_find_no_room_on_the_device_cost_only_the_copy_s_time(made):
    script, result = made(Device(has_memory_of_its_own=True))
    script.device.has_room = False
    script.train()

    found, failure = point(4, outcome(result()))
    assert (result()["ended"], failure) == ("stopped", None)
    assert "hostToDeviceNanoseconds" not in found["overheadParts"]


def test_memory_that_only_the_profiler_s_own_batches_took_is_not_the_script_s(made):
    script, result = made(Device(has_memory_of_its_own=True))
    plain = script.iterate

    def iterate(batch):
        if batch == "resident":
            script.device.facts = {"retries": 1, "reservedPeakBytes": 9_000}
        plain(batch)

    script.iterate = iterate
    script.train()

    found, failure = point(4, outcome(result()))
    assert failure is None
    assert found["memory"]["marginBytes"] == 45


def test_a_script_that_cannot_take_batches_on_the_device_loses_nothing_else(made):
    script, result = made(Device(has_memory_of_its_own=True))
    script.fails_on_device = True
    script.train()

    found, failure = point(4, outcome(result(), status=1))

    assert failure is None
    assert found["computeTime"]["medianNanoseconds"] == 112 * MS
    assert "hostToDeviceNanoseconds" not in found["overheadParts"]


def test_what_a_declared_batch_takes_from_a_loader_of_its_own_is_loading(made):
    script, result = made(declared=True)
    fetch, inner = script.agent.fetch, Source()
    script.agent.fetch = lambda source, produce: fetch(source, lambda: fetch(inner, produce))
    script.train()

    found, _ = point(4, outcome(result()))

    assert found["computeTime"]["medianNanoseconds"] == 112 * MS
    assert found["overheadTime"]["medianNanoseconds"] == 10 * MS
    assert result()["iterations"] == script.trained


def test_epochs_keep_their_length_though_batches_are_repeated(made):
    script, result = made(steps=40)
    script.train(epochs=2)

    assert script.trained == 100, "two epochs of 50"
    assert result()["ended"] == "early"


def test_blocks_alternate_and_nothing_is_timed_while_memory_is_watched(made):
    script, result = made(steps=10, memory_steps=4)
    script.train()

    blocks = []
    for cycle in result()["cycles"]:
        if not blocks or blocks[-1][1] != cycle[1]:
            blocks.append([cycle[0], cycle[1], 0])
        blocks[-1][2] += 1
    assert [(mode, count) for mode, _, count in blocks] == [
        ("warm", 3),
        ("warm", 3),
        ("natural", 6),
        ("frozen", 6),
        ("natural", 6),
        ("frozen", 6),
        ("memory", 4),
    ]


def test_what_was_prefetched_is_skipped_before_timing(made):
    script, result = made()
    Source.prefetched, Source.workers = 4, 2
    try:
        script.train()
    finally:
        Source.prefetched, Source.workers = 0, 0

    kept = [cycle[2] for cycle in result()["cycles"] if cycle[0] == "natural"]
    assert kept[:6] == [False] * 4 + [True] * 2


def test_a_rank_that_follows_changes_over_where_the_leader_said_two_iterations_before(tmp_path):
    leader, follower = (Device(rank=rank, world=2) for rank in (0, 1))
    settings = trial.Settings(directory=str(tmp_path), warmup_steps=6, settle=False, steps=5, block=5)
    scripts = [Script(Agent(device, settings), device) for device in (leader, follower)]
    batches = [script.batches() for script in scripts]
    modes = []

    def in_step():  # as all-reduce keeps them
        while True:
            for script, loader in zip(scripts, batches, strict=True):
                script.iterate(next(loader))
            modes.append([script.agent.mode for script in scripts])

    with pytest.raises(Stop):
        in_step()

    assert all(first == second for first, second in modes)
    assert {"warm", "natural", "frozen", "memory"} <= {first for first, _ in modes}
    assert "stop 0" in (tmp_path / "schedule").read_text()


def test_a_fault_of_the_profiler_leaves_the_script_running(made, capsys):
    script, result = made()
    script.device.parameters = lambda: 1 / 0
    script.train(epochs=1)

    assert script.trained == 50
    assert "a fault of the profiler: ZeroDivisionError" in capsys.readouterr().err
    assert point(4, outcome(result()))[1].reason == "ProfilerFault"


def test_a_result_is_replaced_whole_or_not_at_all(tmp_path):
    trial.write_result(str(tmp_path), {"rank": 0, "iterations": 1, "fetches": 1})
    trial.write_result(str(tmp_path), {"rank": 0, "iterations": 2, "fetches": 1})

    assert [json.loads(path.read_text())["iterations"] for path in tmp_path.iterdir()] == [2]
