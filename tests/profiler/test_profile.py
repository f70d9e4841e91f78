"""The whole profile, with made-up trials: which candidates are tried, what a failure of one means, and the report."""

import dataclasses
import json
from pathlib import Path

import pytest
from muster_profiler import process, progress
from muster_profiler.failures import Problem
from muster_profiler.profile import Options, Profile
from profiler.canned import GIB, MS, cycles, outcome, result

GOLDEN = Path(__file__).parents[1] / "golden" / "reports" / "pytorch-cpu.json"
COMMAND = ["python", "train.py", "--batch", "$(MUSTER_MINIBATCH)"]
OUT_OF_MEMORY = outcome(result(final=False, cycles=[]), status=-9)


class Trials:
    """Stands for the running of scripts: answers each mini-batch with its made-up outcome."""

    def __init__(self, monkeypatch, outcomes):
        self.outcomes, self.tried, self.settings, self.environments, self.timeouts = outcomes, [], [], [], []
        monkeypatch.setattr(process, "run", self.run)

    def run(self, arguments, environment, settings, timeout, _forward, _watch):
        batch = environment.get("MUSTER_MINIBATCH")
        self.tried.append(arguments)
        self.environments.append(environment)
        self.settings.append(settings)
        self.timeouts.append(timeout)
        answer = self.outcomes[int(batch) if batch else None]
        return answer.pop(0) if isinstance(answer, list) else answer


def sized(batch, **changes):
    """A result at a batch: compute and memory grow with it."""
    memory = {"startUpBytes": GIB // 2, "forwardBackwardBytes": GIB + batch * (32 << 20), "optimizerStepBytes": 2 * GIB}
    usual = {"cycles": cycles(20 + 3 * batch, 10 + 3 * batch), "memory": memory, "loaderBatchSize": batch}
    return outcome(result(**usual | changes))


class Limited(dict):
    """Every batch up to the largest that fits has an outcome."""

    def __init__(self, most, rate=None):
        self.most, self.rate = most, rate

    def __missing__(self, batch):
        changes = {"cycles": cycles(self.rate * batch, self.rate * batch)} if self.rate else {}
        found = sized(batch, **changes) if batch <= self.most else OUT_OF_MEMORY
        return dataclasses.replace(found, seconds=4.0)


def profiled(command=COMMAND, environment=None, **options):
    told = []
    profile = Profile(
        command, environment or {}, Options(**options), lambda event, **facts: told.append((event, facts))
    )
    return profile.run(), told


def test_the_report_of_three_candidates_of_which_one_ran_out_of_memory_is_the_golden_one(monkeypatch):
    trials = Trials(monkeypatch, {32: sized(32), 64: sized(64), 128: OUT_OF_MEMORY})

    report, told = profiled(candidates=(64, 32, 128))

    assert report == json.loads(GOLDEN.read_text())
    assert trials.tried == [["python", "train.py", "--batch", str(batch)] for batch in (32, 64, 128)]
    states = [facts["state"] for event, facts in told if event == "trial"]
    assert states == ["started", "done"] * 2 + ["started", "failed"]


def test_the_batch_size_also_goes_into_the_environment(monkeypatch):
    trials = Trials(monkeypatch, {8: sized(8)})

    profiled(["train"], {"ARGS": "--batch $(MUSTER_MINIBATCH)"}, candidates=(8,))

    assert trials.environments[0]["ARGS"] == "--batch 8"
    assert trials.environments[0]["WANDB_MODE"] == "disabled"


def test_a_command_that_never_mentions_the_batch_size_has_one_point_at_its_own(monkeypatch):
    trials = Trials(monkeypatch, {None: sized(48)})

    report, _ = profiled(["python", "train.py"], candidates=(32, 64))

    assert (report["miniBatchApplied"], [p["miniBatch"] for p in report["points"]]) == (False, [48])
    assert "MUSTER_MINIBATCH" not in trials.environments[0]


def test_a_batch_size_that_does_not_reach_the_loader_is_a_warning(monkeypatch):
    Trials(monkeypatch, {8: sized(8, loaderBatchSize=4)})

    report, _ = profiled(candidates=(8,))

    assert [w["reason"] for w in report["warnings"]] == ["MiniBatchMismatch"]
    assert "was given 8, but its loader makes batches of 4" in report["warnings"][0]["message"]


@pytest.mark.scenario("A4")
def test_one_candidate_that_hangs_leaves_time_for_the_others(monkeypatch):
    hung = outcome(status=-9, timed_out=True)
    trials = Trials(monkeypatch, {16: hung, 32: sized(32), 64: sized(64)})

    report, _ = profiled(candidates=(16, 32, 64), deadline_seconds=300)

    assert [p["fits"] for p in report["points"]] == [False, True, True]
    assert trials.timeouts[0] < 160, "it may not eat the others' time"


def test_after_two_that_fail_alike_nothing_larger_is_tried(monkeypatch):
    trials = Trials(monkeypatch, {16: sized(16), 32: OUT_OF_MEMORY, 64: OUT_OF_MEMORY, 128: sized(128)})

    report, _ = profiled(candidates=(16, 32, 64, 128))

    assert len(trials.tried) == 3
    assert "not tried: 128" in report["warnings"][0]["message"]


@pytest.mark.scenario("A7")
def test_one_that_runs_out_of_memory_does_not_rule_out_a_larger_one(monkeypatch):
    Trials(monkeypatch, {16: OUT_OF_MEMORY, 32: sized(32)})

    report, _ = profiled(candidates=(16, 32))

    assert [p["fits"] for p in report["points"]] == [False, True], "memory is not monotone in the batch"


def test_all_out_of_memory_says_so_once(monkeypatch):
    Trials(monkeypatch, {16: OUT_OF_MEMORY, 32: OUT_OF_MEMORY})

    with pytest.raises(
        Problem, match=r"no candidate mini-batch \(16, 32\) fits.*smaller candidates or more memory"
    ) as caught:
        profiled(candidates=(16, 32))

    assert caught.value.reason == "OutOfMemory"


def test_a_script_that_crashes_every_time_is_told_by_its_error(monkeypatch):
    crash = outcome(status=1, tail="Traceback (most recent call last):\nFileNotFoundError: /data/train")
    trials = Trials(monkeypatch, {16: crash, 32: crash, 64: crash})

    with pytest.raises(Problem, match="FileNotFoundError: /data/train") as caught:
        profiled(candidates=(16, 32, 64))

    assert caught.value.reason == "ScriptFailed"
    assert len(trials.tried) == 2


def test_a_batch_that_by_the_smaller_ones_cannot_fit_is_not_tried(monkeypatch):
    trials = Trials(monkeypatch, {32: sized(32), 64: sized(64), 1024: sized(1024)})

    report, _ = profiled(candidates=(32, 64, 1024))

    assert len(trials.tried) == 2
    assert not report["points"][2]["fits"]
    assert "by the smaller ones it would need" in report["points"][2]["problem"]


def test_candidates_that_nobody_gave_go_on_while_a_larger_one_pays(monkeypatch):
    """16 + 3 ms of overhead and compute a sample: from 512 to 1024 brings less than 5 %."""
    trials = Trials(monkeypatch, {batch: sized(batch, memory={}) for batch in (32, 64, 128, 256, 512, 1024)})
    for batch, answer in trials.outcomes.items():
        answer.results[0]["cycles"] = cycles(40 + batch, 30 + batch)

    report, told = profiled()

    assert [p["miniBatch"] for p in report["points"]] == [32, 64, 128, 256, 512, 1024]
    assert [(f["trial"], f["trials"]) for e, f in told if e == "trial" and f["state"] == "started"][-2:] == [
        (5, 5),
        (6, 6),
    ]


def test_candidates_that_the_user_gave_are_all_there_is(monkeypatch):
    Trials(monkeypatch, {16: sized(16, cycles=cycles(50, 40)), 32: sized(32, cycles=cycles(50, 40))})

    report, _ = profiled(candidates=(16, 32))

    assert [p["miniBatch"] for p in report["points"]] == [16, 32]


@pytest.mark.parametrize("most", [1, 3, 8, 13, 31])
def test_where_none_of_the_default_candidates_fits_smaller_ones_are_tried(monkeypatch, most):
    """Though by what was measured far larger ones would fit."""
    Trials(monkeypatch, Limited(most))

    report, _ = profiled()

    fitting = [p["miniBatch"] for p in report["points"] if p["fits"]]
    largest = report["largestMiniBatch"]
    assert largest["verified"]
    assert most / 1.2 <= largest["miniBatch"] <= most
    assert max(fitting) <= most, "and it is timed as far as there is time"
    assert [p["miniBatch"] for p in report["points"]][:3] == [32, 64, 16]


def test_a_batch_that_the_data_set_cannot_fill_is_not_taken_for_the_fastest(monkeypatch):
    def trial(batch):
        return sized(min(batch, 1000), passSamples=1000, loaderBatchSize=batch)

    trials = Trials(monkeypatch, {batch: trial(batch) for batch in (32, 64, 128, 256, 500, 768, 1000, 2048)})
    for answer in trials.outcomes.values():
        answer.results[0]["cycles"] = cycles(45, 40)
        answer.results[0]["memory"] = {}

    report, _ = profiled()
    assert [p["miniBatch"] for p in report["points"]] == [32, 64, 128, 256, 500]

    before = len(trials.tried)
    report, _ = profiled(candidates=(256, 768, 1000, 2048))
    assert [p["fits"] for p in report["points"]] == [True, False, True, False]
    assert report["points"][1]["problem"] == "a pass over the data set has only 1000 samples: not two whole batches"
    assert len(trials.tried) - before == 2

    with pytest.raises(Problem, match="only 1000 samples") as caught:
        profiled(candidates=(768, 2048))
    assert caught.value.reason == "TooFewSamples"

    report, _ = profiled(candidates=(768,))
    assert [p["fits"] for p in report["points"]] == [True], "the user's own is taken as it is"
    assert "Not all batches have 768 samples" in report["warnings"][0]["message"]


@pytest.mark.parametrize(
    "changes", [{"loaderBatchSize": 4}, {"clock": "step"}], ids=["micro-batches", "another's loader"]
)
def test_a_data_set_that_need_not_be_what_the_batches_are_made_of_leaves_out_none(monkeypatch, changes):
    Trials(monkeypatch, {batch: sized(batch, **{"passSamples": 100, **changes}) for batch in (64, 256)})

    report, _ = profiled(candidates=(64, 256))

    assert all("computeTime" in p for p in report["points"])


def test_no_batch_is_larger_than_a_report_may_say(monkeypatch):
    trials = Trials(monkeypatch, {batch: sized(batch) for batch in (65536, 131072)})
    for batch, answer in trials.outcomes.items():
        memory = {"startUpBytes": 0, "forwardBackwardBytes": batch << 12, "optimizerStepBytes": 0}
        answer.results[0]["memory"] = memory

    report, _ = profiled(candidates=(65536, 131072))

    assert "largestMiniBatch" not in report


def test_an_estimate_is_believed_only_of_batches_with_as_many_samples_as_the_candidate(monkeypatch):
    estimates = [{"multiple": m, "forwardBackwardBytes": int(m * GIB), "optimizerStepBytes": 0} for m in (1.0, 32.0)]
    trials = Trials(monkeypatch, {32: sized(32, estimates=estimates, samples=4), 1024: sized(64)})

    profiled(candidates=(32, 1024))

    assert len(trials.tried) == 2, "its loader makes micro-batches, of which memory does not grow"


def test_where_even_no_samples_would_not_fit_none_are_tried(monkeypatch):
    memory = {"startUpBytes": 0, "forwardBackwardBytes": 9 * GIB, "optimizerStepBytes": 9 * GIB}
    estimates = [{"multiple": m, "forwardBackwardBytes": int(m * 2**20), "optimizerStepBytes": 0} for m in (1.0, 2.0)]
    first = sized(32, memory=memory, estimates=estimates, samples=32)
    Trials(monkeypatch, {32: first, 64: OUT_OF_MEMORY, 128: OUT_OF_MEMORY})

    report, _ = profiled()

    assert [p["miniBatch"] for p in report["points"]] == [32, 64, 128]


def test_where_not_even_one_sample_fits_smaller_candidates_are_no_advice(monkeypatch):
    Trials(monkeypatch, dict.fromkeys((64, 32, 16, 8, 4, 2, 1), OUT_OF_MEMORY))

    with pytest.raises(Problem, match=r"\(32, 64, 16, 8, 4, 2, 1\) fits.*Give more memory"):
        profiled()


def test_the_first_candidate_s_trial_estimates_the_others_and_what_clearly_will_not_fit_is_not_tried(monkeypatch):
    estimates = [
        {"multiple": m, "forwardBackwardBytes": int(m * GIB), "optimizerStepBytes": 0} for m in (1.0, 2.0, 16.0)
    ]
    first = sized(32, estimates=estimates)
    trials = Trials(monkeypatch, {32: first, 64: sized(64)})

    report, _ = profiled(candidates=(32, 64, 512))

    assert trials.settings[0].estimate == [2.0, 16.0, 16]
    assert trials.settings[1].estimate == []
    assert report["points"][1]["memory"]["predictedPeakBytes"] == 3 * GIB
    assert report["points"][2]["problem"] == "not tried: by the smaller ones it would need 17.0 GiB of 8.0 GiB"
    assert report["largestMiniBatch"] == {"miniBatch": 206, "verified": False}


@pytest.mark.parametrize(("most", "first"), [(300, 206), (206, 206), (190, 206), (150, 206)])
def test_the_largest_that_fits_is_predicted_tried_and_predicted_anew(monkeypatch, most, first):
    """It is predicted to be 206, for memory that is 8 GiB; throughput is flat, so nothing larger is timed."""
    Trials(monkeypatch, Limited(most, rate=3))

    report, told = profiled()

    assert report["largestMiniBatch"]["verified"]
    assert min(most, 206) / 1.12 <= report["largestMiniBatch"]["miniBatch"] <= min(most, 206)
    assert [p["miniBatch"] for p in report["points"]] == [32, 64, 128, 256]
    assert next(facts["miniBatch"] for event, facts in told if event == "largest") == first


def test_of_candidates_that_the_user_gave_the_largest_is_predicted_only(monkeypatch):
    trials = Trials(monkeypatch, Limited(300))

    report, _ = profiled(candidates=(32, 64))

    assert report["largestMiniBatch"] == {"miniBatch": 206, "verified": False}
    assert len(trials.tried) == 2


def test_no_largest_is_told_where_memory_is_no_concern_or_the_prediction_was_wrong(monkeypatch):
    Trials(monkeypatch, {1: sized(1), 2: sized(2)})
    assert "largestMiniBatch" not in profiled(candidates=(1, 2))[0]
    Trials(monkeypatch, Limited(64))
    assert "largestMiniBatch" not in profiled(candidates=(32, 64, 128))[0]


def test_a_short_script_is_run_again_with_blocks_that_it_is_long_enough_for(monkeypatch):
    early = sized(32, ended="early", iterations=18, cycles=[("warm", 0, True, 100 * MS, 1)] * 18)
    trials = Trials(monkeypatch, {32: [early, sized(32, ended="early")]})

    report, _ = profiled(candidates=(32,))

    assert [(s.warmup_steps, s.block) for s in trials.settings] == [(0, 5), (3, 3)]
    assert report["points"][0]["overheadTime"]["medianNanoseconds"] == 10 * MS
    assert report["warnings"][0]["reason"] == "ScriptEndsEarly"


def test_a_command_that_cannot_be_started_is_named(tmp_path):
    with pytest.raises(Problem, match="cannot start /no/such/python: No such file or directory") as caught:
        profiled(["/no/such/python", "train.py"])

    assert caught.value.reason == "CommandNotFound"


def test_what_is_known_is_noted_before_each_trial(monkeypatch):
    Trials(monkeypatch, {16: sized(16), 32: sized(32)})
    noted = []

    Profile(COMMAND, {}, Options(candidates=(16, 32)), progress.none, lambda *known: noted.append(known)).run()

    assert noted[0] == (None, 16)
    assert (noted[1][0]["points"][0]["miniBatch"], noted[1][1]) == (16, 32)
    assert ([p["fits"] for p in noted[2][0]["points"]], noted[2][1]) == ([True, True], None), "what follows is no point"
