"""A plan in sentences: the rule and the measurement beside each number are those that gave it."""

from datetime import UTC, datetime

import pytest
from muster import sizing
from muster.api.job import ProfileSource, TrainingJobSpec
from muster.api.report import Report
from muster.api.status import TrainingJobStatus
from muster.cli.explain import sentences
from muster.jobs.reports import summary
from support.jobs import job
from unit.sizing.reports import point, report

SHARED = report(point(64, 0.1, 0.01), point(128, 0.19, 0.01), point(256, 0.36, 0.01))


def said(measured: Report, workers: int | None = None, **spec: object) -> list[str]:
    written = job("explained", "true", **spec)["spec"]
    written["worker"]["replicas"] = workers
    parsed = TrainingJobSpec.model_validate(written)
    profile = summary(measured, "", ProfileSource.CONFIG_MAP, datetime.now(UTC))
    plan = sizing.plan(measured, parsed.goal, sizing.Limits.of(parsed), None)
    return list(sentences(parsed, TrainingJobStatus(profile=profile, plan=plan)))


@pytest.mark.parametrize(
    ("scaling", "rule"),
    [
        ("Strong", "Lemma 1, efficiency of G GPUs = (1 + R) / (1 + G R)"),
        ("Weak", "only an exchange that nothing hides costs"),
    ],
)
def test_the_workers_rule_is_that_of_the_scaling(scaling, rule):
    (workers,) = (each for each in said(SHARED, scaling=scaling) if "Lemma 1" in each and "workers" in each)
    assert rule in workers


@pytest.mark.parametrize("workers", [1, 4, 150])
def test_the_measurement_cited_is_that_of_the_mini_batch_that_the_gpus_share(workers):
    profiled, batch, *_ = said(SHARED, workers=workers)
    assert "a mini-batch of 256 takes 360 ms of compute" in profiled
    assert "256 (692 samples/s) on one GPU; no larger one was profiled" in batch


def test_a_batch_that_more_samples_make_no_faster_says_which():
    slower = report(point(64, 0.1, 0.01), point(128, 0.3, 0.01))
    assert "64 (582 samples/s) on one GPU; 128 (413 samples/s) is no faster" in said(slower, goal={"speedup": "1"})[1]


def test_one_gpu_is_just_as_fast_as_one():
    (predicted,) = (each for each in said(SHARED, goal={"speedup": "1"}) if each.startswith("Predicted"))
    assert "just as fast as one GPU, 100 % of linear" in predicted
