"""The operator's metrics, all in one place. Labels are bounded: never a job's or a node's name."""

from datetime import datetime

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from muster.api.status import ConditionType, TrainingJobStatus

disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each counter, that nobody reads

_MINUTES = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)
_STEP = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
_QUICK = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)

JOBS_SEEN = Counter("muster_jobs_created", "TrainingJobs taken up for the first time.")
JOBS_COMPLETED = Counter("muster_jobs_completed", "TrainingJobs that became Complete.")
JOBS_FAILED = Counter(
    "muster_jobs_failed", "TrainingJobs that failed, by the reason of their Failed condition.", ["reason"]
)
JOBS_RESTARTED = Counter("muster_jobs_restarted", "Attempts after the first.")
JOBS = Gauge("muster_jobs", "TrainingJobs in the cache.")
PODS = Gauge("muster_pods", "Pods in the cache.")
TIME_TO_PLAN = Histogram("muster_time_to_plan_seconds", "From a job's creation to its plan.", buckets=_MINUTES)
TIME_TO_FIRST_POD = Histogram(
    "muster_time_to_first_pod_seconds", "From a job's creation to its first training pod.", buckets=_MINUTES
)
TIME_TO_ALL_PODS = Histogram(
    "muster_time_to_all_pods_seconds", "From a job's creation to all its pods being ready.", buckets=_MINUTES
)
PROFILE_SECONDS = Histogram(
    "muster_profile_duration_seconds", "From a job's creation to its profile.", buckets=_MINUTES
)
PREDICTED_STEP = Histogram("muster_predicted_iteration_seconds", "Iteration times that plans predict.", buckets=_STEP)
RECONCILE_SECONDS = Histogram(
    "muster_reconcile_duration_seconds", "Reconciles, by outcome.", ["outcome"], buckets=_QUICK
)
QUEUE_DEPTH = Gauge("muster_queue_depth", "Jobs that wait for their reconcile.")
QUEUE_WAIT = Histogram("muster_queue_wait_seconds", "From a change to the reconcile that answers it.", buckets=_QUICK)
STATUS_WRITES = Counter("muster_status_writes", "Writes of a job's status.")
LEADER = Gauge("muster_leader", "1 where this replica acts, 0 where it stands by.")
API_REQUESTS = Counter(
    "muster_api_requests",
    "API requests by verb, resource and code; code none: no answer.",
    ["verb", "resource", "code"],
)
API_SECONDS = Histogram("muster_api_request_duration_seconds", "API requests by verb.", ["verb"], buckets=_QUICK)


def api_request(verb: str, resource: str, code: str, seconds: float) -> None:
    """Count one API request."""
    API_REQUESTS.labels(verb, resource, code).inc()
    API_SECONDS.labels(verb).observe(seconds)


def status_written(created: datetime, before: TrainingJobStatus, after: TrainingJobStatus, now: datetime) -> None:
    """Count what a write of a job's status tells: each step of a job is written exactly once, so it is counted once."""
    STATUS_WRITES.inc()
    age = max(0.0, (now - created).total_seconds())
    if not before.conditions:
        JOBS_SEEN.inc()
    if after.profile and not before.profile:
        PROFILE_SECONDS.observe(age)
    if after.plan and (before.plan is None or before.plan.inputs != after.plan.inputs):
        TIME_TO_PLAN.observe(age)
        PREDICTED_STEP.observe(after.plan.predicted.iteration_time_microseconds / 1e6)
    if after.attempt > max(1, before.attempt):
        JOBS_RESTARTED.inc(after.attempt - max(1, before.attempt))
    if _became(ConditionType.PODS_READY, before, after) and after.attempt <= 1:
        TIME_TO_ALL_PODS.observe(age)
    if _became(ConditionType.COMPLETE, before, after):
        JOBS_COMPLETED.inc()
    if reason := _became(ConditionType.FAILED, before, after):
        JOBS_FAILED.labels(reason).inc()


def _became(kind: ConditionType, before: TrainingJobStatus, after: TrainingJobStatus) -> str:
    """The reason with which a condition turned true, empty where it did not."""
    was_true = any(condition.type == kind and condition.status == "True" for condition in before.conditions)
    now_true = [
        condition.reason for condition in after.conditions if condition.type == kind and condition.status == "True"
    ]
    return "" if was_true or not now_true else now_true[0]
