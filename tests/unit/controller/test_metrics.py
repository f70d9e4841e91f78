from datetime import UTC, datetime, timedelta

import pytest
from muster import metrics
from muster.api.status import Condition, Plan, TrainingJobStatus
from prometheus_client import REGISTRY

NOW = datetime(2026, 12, 1, 5, tzinfo=UTC)
CREATED = NOW - timedelta(seconds=40)


def condition(kind: str, status: str, reason: str = "Because") -> Condition:
    return Condition(type=kind, status=status, reason=reason, last_transition_time=NOW)


def plan(microseconds: int = 200_000) -> Plan:
    choice = {"value": 1, "recommended": 1, "limited_by": "Goal", "message": ""}
    predicted = {
        "iteration_time_microseconds": microseconds,
        "samples_per_second": 1,
        "efficiency_percent": 80,
        "speedup": "1",
    }
    return Plan.model_validate(
        {"inputs": "sha256:1", "mini_batch": choice, "workers": choice, "servers": choice, "predicted": predicted}
    )


FRESH = TrainingJobStatus(conditions=[condition("Sized", "Unknown")])


@pytest.mark.parametrize(
    ("before", "after", "metric"),
    [
        (TrainingJobStatus(), FRESH, "muster_jobs_created_total"),
        (FRESH, TrainingJobStatus(conditions=[condition("Complete", "True")]), "muster_jobs_completed_total"),
        (FRESH, FRESH.model_copy(update={"plan": plan()}), "muster_time_to_plan_seconds_count"),
        (FRESH, FRESH.model_copy(update={"plan": plan()}), "muster_predicted_iteration_seconds_count"),
        (
            FRESH.model_copy(update={"attempt": 1}),
            FRESH.model_copy(update={"attempt": 2}),
            "muster_jobs_restarted_total",
        ),
        (
            FRESH,
            TrainingJobStatus(conditions=[condition("PodsReady", "True")]),
            "muster_time_to_all_pods_seconds_count",
        ),
    ],
)
def test_each_step_of_a_job_is_counted_when_its_status_is_written_and_once(before, after, metric):
    seen = value(metric)
    metrics.status_written(CREATED, before, after, NOW)
    assert value(metric) == seen + 1
    metrics.status_written(CREATED, after, after, NOW)
    assert value(metric) == seen + 1


def test_failures_are_counted_by_reason():
    seen = value("muster_jobs_failed_total", reason="DeadlineExceeded")
    metrics.status_written(
        CREATED, FRESH, TrainingJobStatus(conditions=[condition("Failed", "True", "DeadlineExceeded")]), NOW
    )
    assert value("muster_jobs_failed_total", reason="DeadlineExceeded") == seen + 1


def test_the_first_attempt_is_no_restart():
    seen = value("muster_jobs_restarted_total")
    metrics.status_written(CREATED, FRESH, FRESH.model_copy(update={"attempt": 1}), NOW)
    assert value("muster_jobs_restarted_total") == seen


def test_no_label_can_grow_without_bound():
    allowed = {"reason", "verb", "resource", "code", "outcome", "le"}
    for metric in REGISTRY.collect():
        if metric.name.startswith("muster_"):
            for sample in metric.samples:
                assert set(sample.labels) <= allowed, metric.name


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0
