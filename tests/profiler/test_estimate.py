"""Memory of mini-batches that were not run: by scripts of every kind on tensors without data, held against torch's own
tracker; and that nothing is changed or written meanwhile."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from muster_profiler import process, trial
from muster_profiler.estimate import EACH, Estimate
from profiler.conftest import PROFILER, newest_only
from profiler.made_up import Device
from profiler.test_corpus import CASES, QUICK

MULTIPLES = 512.0, 1024.0
UNHURRIED = QUICK | {"estimate_seconds": 120.0}
ROUNDED = 64 * 512
"""Bytes by which an allocator's rounding may change what some dozen tensors take."""
CANNOT = {
    "compiled.py": "compiled code takes other memory",
    "ddp.py": "other ranks would wait",
    "sharded.py": "other ranks would wait",
    "hand_sliced.py": "there is no loader",
    "by_hand.py": "there is no loader",
    "background_loader.py": "there is no loader where it trains",
    "changes_batches.py": "it looks into the values of its batches",
    "sparse.py": "how many values are not zero depends on the values",
}


@newest_only
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_a_script_of_any_kind_is_estimated_or_loses_nothing(case, zygote):
    run = zygote.run(case.script, settings=UNHURRIED | {"memory_steps": 1, "estimate": MULTIPLES}, imports=case.imports)

    assert (run.result["ended"], run.result["error"]) == ("stopped", None), run.output
    assert "memory" in run.modes
    assert "pretend" not in run.output
    assert "Traceback" not in run.output
    estimates = run.result["estimates"]
    if case.script in CANNOT:
        assert estimates == [], CANNOT[case.script]
        return
    assert [each["multiple"] for each in estimates] == [1.0, *MULTIPLES]
    for phase in estimates[0].keys() - {"multiple"}:
        once, small, large = (each[phase] for each in estimates)
        assert large - small == pytest.approx((small - once) * 512 / 511, abs=ROUNDED), "each is what it is said to be"
        assert large - small > 4 * ROUNDED


def test_where_a_storage_s_end_cannot_be_seen_nothing_is_estimated(zygote):
    run = zygote.run("plain.py", settings=UNHURRIED | {"estimate": (2.0,)})

    assert run.result["ended"] == "stopped"
    assert bool(run.result["estimates"]) == (tuple(map(int, zygote.torch.split(".")[:2])) >= (2, 1))


@newest_only
def test_the_estimate_grows_as_torch_s_own_tracker_says(zygote):
    run = zygote.run("tracked.py", "16", settings=UNHURRIED | {"estimate": (8.0, 32.0)})
    tracked = zygote.run("tracked.py", "truth", "128", "512").output.split()

    once, eight, thirty_two = (each["forwardBackwardBytes"] for each in run.result["estimates"])
    assert thirty_two - eight == int(tracked[1]) - int(tracked[0])
    assert once < eight


class Pretence:
    """Of a made-up framework: a sample takes 100 bytes forward and backward, and 10 in the step."""

    def __init__(self, device):
        self.device, self.asked, self.over = device, [], False

    def batch(self, outline, samples, wanted):
        self.asked.append((outline, samples, wanted))
        self.device.pretended = 100 * wanted
        return "pretended"

    def restart_peak(self):
        self.device.pretended //= 10

    def peak(self):
        return self.device.pretended

    def end(self):
        self.over = True


@pytest.fixture
def pretending(made):
    def pretending(iterate=None, seconds=120.0):
        device = Device()
        device.pretence = Pretence(device)
        script, result = made(device, estimate=(2.0, 16.0), estimate_seconds=seconds)
        plain = script.iterate
        script.iterate = lambda batch: (
            iterate(script, plain, batch) if iterate and batch == "pretended" else plain(batch)
        )
        return script, result

    return pretending


def train(script, then=lambda: None):
    """In a thread of its own, which then stays barred from writing, as a script's would until its process ends."""
    with ThreadPoolExecutor(1) as alone:
        alone.submit(lambda: (script.train(), then())).result()
    if script.agent.estimate:
        script.agent.estimate.aside.thread = None  # another thread may get its number


def test_both_phases_are_estimated_at_every_multiple_after_all_else(pretending):
    script, result = pretending()
    train(script)

    assert result()["estimates"] == [
        {"multiple": 1.0, "forwardBackwardBytes": 400, "optimizerStepBytes": 40},
        {"multiple": 2.0, "forwardBackwardBytes": 800, "optimizerStepBytes": 80},
        {"multiple": 16.0, "forwardBackwardBytes": 6400, "optimizerStepBytes": 640},
    ]
    assert script.device.pretence.asked == [("outline of 1", 4, wanted) for wanted in (4, 8, 64) for _ in range(EACH)]
    assert script.device.pretence.over
    assert (result()["ended"], result()["cycles"][-1][0]) == ("stopped", trial.MEMORY)


def test_a_script_that_fails_on_tensors_without_data_loses_only_the_estimate(pretending):
    def iterate(script, plain, batch):
        if len(script.device.pretence.asked) > 2 * EACH - 1:
            raise RuntimeError("no data")
        plain(batch)

    script, result = pretending(iterate)
    train(script)

    assert (result()["ended"], result()["error"]) == ("stopped", None)
    assert [each["multiple"] for each in result()["estimates"]] == [1.0]
    assert script.device.pretence.over


def test_a_script_that_never_steps_on_them_is_ended_all_the_same(pretending):
    script, result = pretending(lambda *_: None)
    train(script)

    assert (result()["ended"], result()["estimates"]) == ("stopped", [])


def test_one_that_takes_longer_than_it_may_is_ended_with_what_is_known(pretending):
    script, result = pretending(seconds=0.0)
    train(script)

    assert (result()["ended"], result()["estimates"]) == ("stopped", [])


def test_nothing_is_written_meanwhile_and_what_is_said_goes_nowhere(pretending, capfd, tmp_path_factory):
    folder = tmp_path_factory.mktemp("the user's")
    checkpoint, lock = folder / "checkpoint", folder / "lock"
    checkpoint.write_text("weights")
    lock.touch()
    refused = []

    def iterate(script, plain, batch):
        os.write(1, b"a loss of nothing")
        for act in (lambda: checkpoint.write_text(""), checkpoint.unlink, lambda: os.system("rm -r data")):
            with pytest.raises(PermissionError, match="can write nothing"):
                act()
            refused.append(act)
        assert checkpoint.read_text() == "weights"
        plain(batch)

    def then():
        print("after")
        for act in (lambda: checkpoint.write_text("without data, for all that is known"), lock.unlink):
            with pytest.raises(PermissionError):
                act()
        os.system("true")

    script, result = pretending(iterate)
    print("before")
    train(script, then)
    assert lock.exists()
    assert len(result()["estimates"]) == 3
    assert len(refused) == 3 * 3 * EACH
    assert capfd.readouterr().out == "before\nafter\n"


@newest_only
@pytest.mark.parametrize("way", ["save", "move"])
def test_a_checkpoint_of_tensors_without_data_does_not_take_a_real_one_s_place(zygote, tmp_path, way):
    checkpoint = tmp_path / "best.pt"
    plain = zygote.run("saves_best.py", str(checkpoint), way, settings=QUICK)
    assert checkpoint.stat().st_size > 1000, plain.output
    checkpoint.write_text("weights of another day")

    run = zygote.run("saves_best.py", str(checkpoint), way, settings=UNHURRIED | {"estimate": (2.0,)})

    assert (run.result["ended"], len(run.result["estimates"])) == ("stopped", 2), run.output
    assert checkpoint.read_text() == "weights of another day"


@pytest.mark.parametrize("why", [lambda: None, lambda: 1 / 0], ids=["refused", "failed"])
def test_where_it_cannot_even_begin_the_script_goes_on_to_its_usual_end(pretending, capfd, tmp_path_factory, why):
    script, result = pretending()
    script.device.pretend = why
    train(script, lambda: (print("after"), (tmp_path_factory.mktemp("results") / "loss").write_text("0.1")))

    assert (result()["ended"], result()["estimates"], result()["estimating"]) == ("stopped", [], False)
    assert capfd.readouterr().out == "after\n"


def test_each_loader_s_batches_grow_from_their_own_size(tmp_path):
    pretence = Pretence(Device())
    estimate = Estimate(lambda: pretence, (3.0,), 120.0, str(tmp_path))
    estimate.done = EACH
    for outline in (("labelled", 4), ("unlabelled", 28)):
        estimate.batch(outline)
    estimate.end()
    estimate.end()
    estimate.aside.thread = None

    assert pretence.asked == [("labelled", 4, 12), ("unlabelled", 28, 84)]


def test_what_the_estimate_takes_is_not_taken_from_the_script_s_time_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)
    result = {"final": True, "rank": 0, "iterations": 9, "fetches": 9}
    script = f"""
import sys, time
sys.path.insert(0, {str(PROFILER)!r})
from muster_profiler.trial import write_result
for estimating in (True, False):
    write_result({str(tmp_path)!r}, {result!r} | {{"estimating": estimating}})
    time.sleep(3 if estimating else 600)
"""
    settings = trial.Settings(directory=str(tmp_path))
    outcome = process.run([sys.executable, "-c", script], {}, settings, timeout=300, forward=False)

    assert outcome.results[0]["estimating"] is False, "it was ended while it estimated"
    assert not outcome.timed_out
