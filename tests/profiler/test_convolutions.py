"""Convolution algorithms: the shapes of a real script, each pass by each way, and what a setting brings."""

import json

import pytest
from muster.api.report import ConvolutionLayer, Report
from muster_profiler import convolutions, process, progress
from muster_profiler.convolutions import Convolutions
from muster_profiler.profile import Options, Profile
from profiler.canned import cycles, outcome, result

PASS = {"convolution_seconds": 30.0, "warmup_steps": 2, "settle": False, "steps": 0, "memory_steps": 0}


@pytest.fixture(scope="module")
def measured(zygote):
    run = zygote.run("convolutional.py", settings=PASS)
    assert run.status == 0, run.output
    return run.result["convolutions"]


def rows(found, direction):
    return {row["shape"]: row for row in found["rows"] if row["direction"] == direction}


SAME = "input 8x16x32x32 kernel 16x16x3x3 padding 1x1 float32"
FIRST = "input 8x3x32x32 kernel 16x3x3x3 padding 1x1 float32"
STRIDED = "input 8x16x32x32 kernel 32x16x3x3 stride 2x2 float32"
DEPTHWISE = "input 8x32x15x15 kernel 32x1x3x3 groups 32 float32"


def test_every_distinct_shape_is_found_once_with_the_number_of_its_layers(measured):
    layers = {shape: row["layers"] for shape, row in rows(measured, "forward").items()}

    assert layers == {FIRST: 1, SAME: 2, STRIDED: 1, DEPTHWISE: 1}
    assert (measured["leftOut"], measured["troubles"]) == (0, [])


def test_the_first_layer_needs_no_gradient_of_its_input(measured):
    assert rows(measured, "inputGradient").keys() == {SAME, STRIDED, DEPTHWISE}
    assert rows(measured, "weightGradient").keys() == {FIRST, SAME, STRIDED, DEPTHWISE}


def test_each_pass_has_the_ways_that_pytorch_offers_and_the_one_in_use(measured):
    for row in measured["rows"]:
        ConvolutionLayer.model_validate(row | {"miniBatch": 8})
        names = [each["name"] for each in row["algorithms"]]
        assert len(names) == len(set(names)) >= 2
        assert row["used"] in names
        assert all(each["timeNanoseconds"] > 0 for each in row["algorithms"])


def test_the_native_way_unfolds_its_input_and_says_how_much_that_takes(measured):
    native = [each for each in rows(measured, "forward")[SAME]["algorithms"] if each["kind"] == "GEMM"]

    assert [each["workspaceBytes"] for each in native] == [8 * 16 * 9 * 32 * 32 * 4]


def test_a_model_in_channels_last_is_seen_to_be(zygote):
    found = zygote.run("convolutional.py", "8", "channels_last", settings=PASS).result["convolutions"]

    assert any(shape.endswith("channels_last") for shape in rows(found, "forward"))


def test_what_costs_most_comes_first_and_the_rest_is_counted_when_time_is_over(zygote):
    found = zygote.run("convolutional.py", settings=PASS | {"convolution_seconds": 1e-9}).result["convolutions"]

    assert found == {"rows": [], "leftOut": 11, "troubles": []}


def test_a_compiled_model_runs_on(zygote):
    zygote.require(2, 1)

    run = zygote.run("convolutional.py", "8", "compile", settings=PASS)

    assert run.status == 0, run.output
    assert rows(run.result["convolutions"], "forward").keys() == {FIRST, SAME, STRIDED, DEPTHWISE}


def test_a_script_without_convolutions_has_none(zygote):
    run = zygote.run("plain.py", settings=PASS)

    assert run.result["convolutions"]["rows"] == []
    assert run.result["convolutional"] is False


@pytest.mark.parametrize("switch", ["channels_last", "cudnn.benchmark"])
def test_a_setting_is_tried_on_the_whole_step(zygote, switch):
    run = zygote.run("convolutional.py", settings={"switch": switch, "steps": 4, "seconds": 2.0, "settle": False})

    assert run.result["ended"] == "stopped", run.output
    assert {"natural", "frozen"} <= set(run.modes)


# What the parent makes of it, with made-up trials.

POINTS = [
    {
        "miniBatch": batch,
        "fits": True,
        "computeTime": {"medianNanoseconds": time, "intervalLowNanoseconds": 95_000_000},
        "overheadTime": {"medianNanoseconds": time},
    }
    for batch, time in ((16, 100_000_000), (32, 150_000_000))
]


def layer(onednn, last, native=900):
    ways = (("Mkldnn", onednn), ("Mkldnn.channels_last", last), ("Slow2d", native))
    algorithms = [{"name": n, "kind": "x", "timeNanoseconds": t, "workspaceBytes": 0} for n, t in ways]
    return {"shape": "s", "direction": "forward", "layers": 2, "algorithms": algorithms, "used": "Mkldnn"}


class Script:
    """Answers trials: its layers, and the compute time of its step with each setting."""

    def __init__(self, layers, steps=None, left=60.0):
        self.layers, self.steps, self.seconds, self.asked = layers, steps or {}, left, []
        self.found = Convolutions(self.trial, lambda: self.seconds)

    def trial(self, batch, settings, more):
        self.asked.append((batch, settings.get("switch", ""), dict(more)))
        self.seconds -= 10
        if settings.get("switch"):
            milliseconds = self.steps.get(settings["switch"], 100)
            return outcome(result(cycles=cycles(milliseconds + 5, milliseconds), convolutions=None))
        found = {"rows": self.layers, "leftOut": 0, "troubles": []}
        return outcome(result(convolutions=None if self.layers is None else found))


def test_the_batch_of_the_highest_throughput_comes_first_and_the_rest_while_there_is_time():
    script = Script([layer(500, 500)], left=24)
    script.found.measure(POINTS, "cpu", {})

    assert [batch for batch, _, _ in script.asked] == [32, 16]
    assert [row["miniBatch"] for row in script.found.rows] == [32, 16]


def test_without_time_nothing_is_begun_and_that_is_said():
    script = Script([layer(500, 500)], left=1)
    script.found.measure(POINTS, "cpu", {})

    assert (script.asked, script.found.rows) == ([], [])
    assert [warning["reason"] for warning in script.found.warnings] == ["ConvolutionsSkipped"]


def test_on_a_cpu_channels_last_is_tried_where_its_layers_promise_something_and_told_where_the_step_keeps_it():
    script = Script([layer(500, 200)], {"channels_last": 60})
    script.found.measure(POINTS[:1], "cpu", {})

    assert script.asked[1:] == [(16, "channels_last", {})]
    assert script.found.trials[0]["computeTime"]["medianNanoseconds"] < 61_000_000
    (warning,) = script.found.warnings
    assert warning["reason"] == "FasterSetting"
    assert "instead of 100.0 ms at mini-batch 16 (measured): convert the model" in warning["message"]


@pytest.mark.parametrize(("last", "tried"), [(499, False), (900, False), (470, True)])
def test_what_promises_nothing_is_not_tried(last, tried):
    script = Script([layer(500, last)])
    script.found.measure(POINTS[:1], "cpu", {})

    assert (len(script.asked) == 2) == tried


def test_a_setting_that_the_step_does_not_keep_is_reported_and_not_recommended():
    script = Script([layer(500, 200)], {"channels_last": 99})
    script.found.measure(POINTS[:1], "cpu", {})

    assert len(script.found.trials) == 1
    assert script.found.warnings == []


def test_on_a_gpu_each_setting_that_a_job_can_be_given_is_tried_on_the_whole_step():
    script = Script([dict(layer(500, 500), used="Cudnn")], {"cudnn.benchmark": 80}, left=100)
    script.found.measure(POINTS[:1], "cuda", {"cudnnBenchmark": "False"})

    caps = [(16, "cudnn.benchmark", {"CUDNN_CONV_WSCAP_DBG": cap}) for cap in ("16", "256")]
    assert script.asked[1:] == [(16, "cudnn.benchmark", {}), *caps, (16, "channels_last", {})]
    assert [each["setting"] for each in script.found.trials][:2] == [
        "cudnn.benchmark",
        "cudnn.benchmark CUDNN_CONV_WSCAP_DBG=16",
    ]
    assert [warning["reason"] for warning in script.found.warnings] == ["FasterSetting"]


def test_a_script_that_cannot_be_measured_is_a_warning():
    script = Script(None)
    script.found.measure(POINTS, "cpu", {})

    assert len(script.asked) == 1
    assert script.found.warnings[0]["reason"] == "ConvolutionsNotMeasured"


def test_the_report_has_both_and_is_valid(monkeypatch):
    def run(_arguments, _environment, settings, *_):
        found = {"rows": [layer(500, 200)], "leftOut": 0, "troubles": []}
        return outcome(result(convolutional=True, convolutions=found if settings.convolution_seconds else None))

    monkeypatch.setattr(process, "run", run)

    found = Profile(["train"], {}, Options(convolution_seconds=60), progress.none).run()

    report = Report.model_validate(json.loads(json.dumps(found)))
    assert [row.used for row in report.convolutions] == ["Mkldnn"]
    assert [each.setting for each in report.convolution_trials] == ["channels_last"]


@pytest.mark.parametrize(("seconds", "convolutional"), [(0, True), (60, False)])
def test_they_can_be_left_out_and_are_for_a_model_without_any(monkeypatch, seconds, convolutional):
    monkeypatch.setattr(process, "run", lambda *_: outcome(result(convolutional=convolutional)))
    monkeypatch.setattr(convolutions.Convolutions, "measure", lambda *_: pytest.fail("not asked for"))

    assert "convolutions" not in Profile(["train"], {}, Options(convolution_seconds=seconds), progress.none).run()
