from datetime import UTC, datetime

import pytest
from muster.api.inventory import Node
from muster.cluster import views
from muster.jobs.model import Role

META = {"name": "resnet-worker-2", "namespace": "team", "uid": "u", "resourceVersion": "1"}
LABELS = {"muster.dev/job": "resnet", "muster.dev/role": "worker", "muster.dev/index": "2", "muster.dev/attempt": "3"}


def pod(status: dict | None = None, containers=("train",), **meta) -> dict:
    spec = {"containers": [{"name": name} for name in containers], "nodeName": "node-1"}
    return {"metadata": META | {"labels": LABELS} | meta, "spec": spec, "status": status or {}}


def state(name: str, **what) -> dict:
    return {"name": name, "state": what}


def test_a_pod_says_its_place_in_the_job():
    owner = {"kind": "TrainingJob", "name": "resnet", "uid": "job", "controller": True}
    view = views.pod_view(pod(ownerReferences=[owner], creationTimestamp="2026-12-01T05:00:00Z"))
    assert (view.role, view.index, view.attempt, view.owner_uid) == (Role.WORKER, 2, 3, "job")
    assert view.created == datetime(2026, 12, 1, 5, tzinfo=UTC)
    assert (view.phase, view.ready, view.deleting, view.node) == ("Pending", False, False, "node-1")


@pytest.mark.parametrize(
    "marks",
    [{}, {"muster.dev/role": "king", "muster.dev/index": "-1", "muster.dev/attempt": "x"}, {"muster.dev/index": "٣"}],
)
def test_a_foreign_pod_with_strange_labels_is_nobody(marks):
    view = views.pod_view(pod(labels={"muster.dev/job": "resnet"} | marks))
    assert (view.role, view.index, view.attempt, view.owner_uid) == (None, 0, 0, None)


def test_the_training_container_decides_not_the_sidecar():
    ended = {"exitCode": 3, "reason": "Error", "message": "boom", "finishedAt": "2026-12-01T05:00:00Z"}
    statuses = [state("proxy", running={}), state("train", terminated=ended)]
    view = views.pod_view(pod({"phase": "Running", "containerStatuses": statuses}, containers=("proxy", "train")))
    assert view.termination is not None
    assert (view.termination.exit_code, view.termination.reason, view.termination.message) == (3, "Error", "boom")


def test_without_a_container_of_that_name_the_first_is_the_training_container():
    statuses = [state("main", terminated={"exitCode": 0})]
    view = views.pod_view(pod({"phase": "Succeeded", "containerStatuses": statuses}, containers=("main",)))
    assert view.termination is not None
    assert view.termination.exit_code == 0


def test_an_init_container_that_cannot_start_is_why_the_pod_waits():
    status = {
        "initContainerStatuses": [state("muster", waiting={"reason": "ImagePullBackOff", "message": "no such image"})],
        "containerStatuses": [state("train", waiting={"reason": "PodInitializing"})],
    }
    view = views.pod_view(pod(status))
    assert (view.waiting_reason, view.waiting_message) == ("ImagePullBackOff", "no such image")


def test_an_init_container_that_failed_is_told():
    status = {
        "phase": "Failed",
        "initContainerStatuses": [state("muster", terminated={"exitCode": 1, "reason": "Error"})],
        "containerStatuses": [state("train", waiting={"reason": "PodInitializing"})],
    }
    view = views.pod_view(pod(status))
    assert view.message == "init container muster ended with exit code 1: Error"
    assert view.termination is None


def test_conditions_tell_readiness_disruption_and_why_no_node_has_room():
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "PodScheduled", "status": "False", "message": "0/4 nodes: Insufficient nvidia.com/gpu"},
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    ]
    view = views.pod_view(pod({"phase": "Running", "conditions": conditions}))
    assert view.ready
    assert view.disruption == "PreemptionByScheduler"
    assert view.unschedulable.endswith("Insufficient nvidia.com/gpu")


def test_a_deleted_pod_says_by_when_it_is_gone():
    view = views.pod_view(pod(deletionTimestamp="2026-12-01T05:00:30Z"))
    assert view.deleting
    assert view.gone_by == datetime(2026, 12, 1, 5, 0, 30, tzinfo=UTC)


def test_messages_of_others_are_cut():
    view = views.pod_view(
        pod(
            {
                "message": "x" * 10_000,
                "containerStatuses": [state("train", terminated={"exitCode": 0, "message": "y" * 10_000})],
            }
        )
    )
    assert len(view.message) == 1024
    assert view.termination is not None
    assert len(view.termination.message) == 4096


GOOD = {
    "goal": {"efficiencyPercent": 80},
    "worker": {"template": {"spec": {"containers": [{"name": "train", "command": ["train"]}]}}},
}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, "spec.goal: missing; spec.worker: missing"),
        (GOOD | {"goal": 7}, "spec.goal: must be an object"),
        (GOOD | {"goal": {}}, "spec.goal: give exactly one goal: efficiencyPercent, speedup, deadline or cost"),
        (GOOD | {"replicas": 3}, "spec.replicas: unknown field"),
        (GOOD | {"worker": {"template": {"spec": 7}}}, "spec.worker.template.spec: must be an object"),
        (GOOD | {"chief": GOOD["worker"]}, "spec: only a job of framework TensorFlow has chief"),
    ],
)
def test_a_spec_that_breaks_the_models_is_a_sentence_without_the_words_of_python(spec, says):
    view = views.job_view({"metadata": META | {"generation": 4}, "spec": spec})
    assert view.spec is None
    assert view.spec_error == says


def test_a_status_that_nobody_can_read_is_an_empty_one():
    view = views.job_view({"metadata": META, "spec": GOOD, "status": {"attempt": "many"}})
    assert view.spec is not None
    assert view.status.attempt == 0


@pytest.mark.parametrize(
    ("spec", "conditions", "counts"),
    [
        ({}, [], True),
        ({}, [{"type": "Ready", "status": "True"}], True),
        ({}, [{"type": "Ready", "status": "Unknown"}], False),
        ({"unschedulable": True}, [], False),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, [], True),
        ({"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}, [], False),
        ({"taints": [{"key": "dedicated", "effect": "PreferNoSchedule"}]}, [], True),
    ],
)
def test_a_node_counts_where_an_ordinary_gpu_pod_may_run(spec, conditions, counts):
    room = {"cpu": "15900m", "memory": "64Gi", "nvidia.com/gpu": "8"}
    raw = {"metadata": {"name": "n"}, "spec": spec, "status": {"allocatable": room, "conditions": conditions}}
    expected = Node("n", gpus=8, cpu_millicores=15_900, memory_bytes=64 * 2**30)
    assert views.node_view(raw) == (expected if counts else None)


@pytest.mark.parametrize(
    ("hard", "used", "left"),
    [
        ({"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "3"}, 5),
        ({"requests.nvidia.com/gpu": "2"}, {"requests.nvidia.com/gpu": "3"}, 0),
        ({"requests.nvidia.com/gpu": "8"}, {}, 8),
        ({"pods": "8"}, {"pods": "3"}, None),
    ],
)
def test_a_quota_says_how_many_gpus_it_leaves(hard, used, left):
    view = views.quota_view({"metadata": META, "status": {"hard": hard, "used": used}})
    assert (view.gpus_left if view else None) == left


@pytest.mark.parametrize(("indexes", "kept"), [("0,3-5", True), ("0-511", True), ("0-9999999999", False), ("x", False)])
def test_a_status_with_indexes_that_no_job_has_is_as_none(indexes: str, kept: bool):
    counts = {"desired": 2, "completedIndexes": indexes}
    job = views.job_view({"metadata": META, "spec": {}, "status": {"attempt": 2, "workers": counts}})
    assert job.status.attempt == (2 if kept else 0)
