"""The reader of a profiling pod's log: it finds the true report in a flood; a false one fails nothing but its job."""

import json
from pathlib import Path

import pytest
from muster.api import report_log
from muster.api.report import Report, schema
from muster.api.report_log import ReportError, read
from muster_profiler import report as writer

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "reports"
PYTORCH = json.loads((GOLDEN / "pytorch-cpu.json").read_text())


def published(report):
    """A report as the profiler publishes it: the lines of the log, the termination message, the digest."""
    content = writer.text(report)
    return (
        "\n".join(writer.lines(content)) + "\n",
        writer.summary(report, writer.digest(content)),
        writer.digest(content),
    )


def large(tensors=3000):
    made = [{"name": f"layer.{i}.weight", "elements": i, "bytes": 4 * i} for i in range(tensors)]
    return PYTORCH | {"parameters": {"bytes": 1, "exchangedBytes": 1, "tensors": made}}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_golden_report_is_read_and_written_again_without_loss(path):
    raw = json.loads(path.read_text())

    report = report_log.parse(path.read_text())

    assert Report.model_validate(report.dump()) == report
    assert [point.mini_batch for point in report.points] == [point["miniBatch"] for point in raw["points"]]


def test_a_report_by_hand_needs_no_more_than_medians():
    point = report_log.parse((GOLDEN / "by-hand.json").read_text()).points[0]

    assert point.compute_time is not None
    assert point.compute_time.interval_low_nanoseconds == point.compute_time.median_nanoseconds == 182_000_000


def test_the_published_schema_is_the_models():
    assert (ROOT / "docs" / "report.schema.json").read_text() == schema(), (
        "docs/report.schema.json is stale: .venv/bin/python -m muster.api.report > docs/report.schema.json"
    )


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_golden_report_satisfies_the_published_schema(path):
    jsonschema = pytest.importorskip("jsonschema")

    jsonschema.validate(json.loads(path.read_text()), json.loads(schema()))


def test_one_line_is_found_after_a_flood():
    log, summary, digest = published(PYTORCH)

    report, found = read("noise\n" * 100_000 + log, summary)

    assert found == digest
    assert len(report.parameters.tensors) == 3


def test_parts_are_put_together_though_other_lines_lie_between_them():
    log, summary, digest = published(large())
    lines = log.splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 64 << 10 for line in lines)

    report, found = read("\nnoise\n".join(lines), summary)

    assert (found, len(report.parameters.tensors)) == (digest, 3000)


@pytest.mark.parametrize("damage", ["rotated", "cut", "changed"])
def test_a_damaged_log_leaves_the_summary(damage):
    log, summary, digest = published(large())
    lines = log.splitlines()
    damaged = {"rotated": lines[2:], "cut": lines[:-1], "changed": [lines[0].replace("layer", "mayer"), *lines[1:]]}

    report, found = read("\n".join(damaged[damage]), summary)

    assert found == digest, "the digest still names the whole report"
    assert report.points[0].compute_time is not None
    assert (report.parameters.tensor_count, len(report.parameters.tensors)) == (3000, 1)
    assert report.parameters.tensors[0].name == "layer.2999.weight", "the largest"


def test_a_forged_report_after_the_true_one_is_not_taken():
    log, summary, digest = published(PYTORCH)
    forged, _, _ = published(PYTORCH | {"miniBatchApplied": False})

    report, found = read(log + forged, summary)

    assert (found, report.mini_batch_applied) == (digest, True)


def test_without_a_termination_message_the_last_valid_report_counts():
    log, _, digest = published(PYTORCH)

    assert read("MUSTER-REPORT {}\n" + log + 'MUSTER-REPORT {"format": 1\nMUSTER-REPORT-END 3 x\n', "")[1] == digest


def test_what_went_wrong_is_the_error():
    with pytest.raises(ReportError, match=r"^No candidate fits: out of memory$") as caught:
        read("", writer.problem("OutOfMemory", "no candidate fits: out of memory"))

    assert caught.value.reason == "OutOfMemory"


def test_nothing_at_all_is_said_with_the_last_words():
    with pytest.raises(ReportError, match=r"without a report.*The last it said: Killed") as caught:
        read("step 1\nKilled\n\n", "")

    assert caught.value.reason == "ReportMissing"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "muster.dev/profile/v2"}, "its format is 'muster.dev/profile/v2'"),
        ({"points": []}, "points"),
        ({"points": [{"miniBatch": 1, "fits": True}] * 17}, "points"),
        ({"points": [{"miniBatch": -1, "fits": True}]}, "points.0.miniBatch"),
        ({"points": [{"miniBatch": 10**9, "fits": True}]}, "points.0.miniBatch"),
        ({"device": {"kind": "cpu", "name": "x" * 600, "memoryBytes": 1}}, "device.name"),
        ({"parameters": {"bytes": 1e300, "exchangedBytes": 1}}, "parameters.bytes"),
        ({"environment": {"x": "y" * 3000}}, "environment.x"),
        ({"warnings": [{"reason": "not a reason", "message": ""}]}, "warnings.0.reason"),
        ({"device": None}, "device"),
    ],
)
def test_a_report_beyond_the_schema_is_refused_by_field(change, message):
    with pytest.raises(ReportError, match="not valid") as caught:
        report_log.parse(json.dumps(PYTORCH | change))

    assert message in caught.value.message
    assert len(caught.value.message) < 600


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", "{" * 100_000, "[" * 200_000, '{"format": NaN}', '{"a":' * 50_000, "\ud800", "9" * 5000],
    ids=lambda text: text[:12] or "empty",
)
def test_hostile_text_raises_nothing_but_a_report_error(text):
    with pytest.raises(ReportError):
        report_log.parse(text)
    with pytest.raises(ReportError):
        read(f"MUSTER-REPORT {text}\nMUSTER-REPORT-END 9999 sha256:{'0' * 64}", text)


def test_a_thousand_forged_ends_cost_no_more_than_a_few_tries():
    forged = "MUSTER-REPORT-PART 1/2 x\n" * 200_000 + f"MUSTER-REPORT-END 2 sha256:{'0' * 64}\n" * 1000

    with pytest.raises(ReportError, match="without a report"):
        read(forged, "")


@pytest.mark.parametrize("tensors", [0, 3, 3000])
@pytest.mark.parametrize("points", [1, 16])
def test_the_summary_is_small_valid_and_enough_to_size_the_job(tensors, points):
    point = PYTORCH["points"][0]
    failed = PYTORCH["points"][-1] | {"problem": "out of memory: " + "x" * 2000}
    report = large(tensors) | {
        "points": [point | {"miniBatch": 1 << i} for i in range(points - 1)] + [failed],
        "warnings": [{"reason": "NotSteady", "message": "y" * 2000}] * 32,
        "environment": {str(i): "z" * 500 for i in range(64)},
    }

    summary = writer.summary(report, "sha256:" + "0" * 64)

    assert len(summary) <= 4096
    read_again, _ = read("", summary)
    assert [p.mini_batch for p in read_again.points] == [p["miniBatch"] for p in report["points"]]
    for found, given in zip(read_again.points, report["points"], strict=True):
        if "computeTime" in given:
            assert found.compute_time is not None
            assert found.compute_time.median_nanoseconds == given["computeTime"]["medianNanoseconds"]
