"""Real scripts, real training, real nodes: what a user applies is profiled, sized, run and ended."""

import re
from pathlib import Path

import pytest
import yaml
from support.jobs import job
from support.live import Namespace

EXAMPLES = Path(__file__).parents[3] / "examples"


def example(name: str) -> dict:
    return yaml.safe_load((EXAMPLES / name / "job.yaml").read_text())


def losses(log: str) -> list[float]:
    return [float(found) for found in re.findall(r"loss[ =:]+([0-9.]+)", log)]


def running(cluster: Namespace, name: str, role: str) -> list[str]:
    """The role's pods that hold anything: one that has ended by itself stays for its log."""
    ended = ("Succeeded", "Failed")
    return [pod["metadata"]["name"] for pod in cluster.pods(name, role) if pod["status"]["phase"] not in ended]


def created(cluster: Namespace, name: str, role: str) -> set[str]:
    """Names of the role's pods that were ever scheduled, by the scheduler's own events (servers are gone by now)."""
    events = cluster.kubectl(
        "get", "events", "--field-selector=reason=Scheduled", "-o", "jsonpath={.items[*].involvedObject.name}"
    )
    return {pod for pod in events.split() if pod.startswith(f"{name}-{role}-")}


def test_the_parameter_server_example_is_profiled_sized_and_trained(cluster: Namespace) -> None:
    manifest = example("pytorch-parameter-server")
    manifest["spec"]["network"]["serverBandwidth"] = "300Mbit"  # half the example's: on a slow machine 2 servers still
    name = manifest["metadata"]["name"]
    cluster.apply(manifest)
    cluster.wait_for(name, "Profiled")
    cluster.wait_for(name, "Complete")
    plan = cluster.status(name)["plan"]
    workers, servers = plan["workers"]["value"], plan["servers"]["value"]
    assert workers >= 2
    assert servers >= 2
    assert len(created(cluster, name, "worker")) == workers
    assert len(created(cluster, name, "server")) == servers
    seen = losses(cluster.kubectl("logs", f"{name}-worker-0"))
    assert seen[-1] < seen[0] / 2, "the loss does not fall"
    cluster.eventually("no server runs on", lambda: not running(cluster, name, "server"))


def test_the_all_reduce_example_is_profiled_sized_and_trained(cluster: Namespace) -> None:
    manifest = example("pytorch-ddp")
    name = manifest["metadata"]["name"]
    cluster.apply(manifest)
    cluster.wait_for(name, "Complete")
    status = cluster.status(name)
    assert status["plan"]["servers"]["value"] == 0
    assert len(created(cluster, name, "worker")) == status["plan"]["workers"]["value"] >= 2
    seen = losses(cluster.kubectl("logs", f"{name}-worker-0"))
    assert seen[-1] < seen[0], "the loss does not fall"


def test_recommend_stops_after_the_plan(cluster: Namespace) -> None:
    cluster.apply(job("advice", "sleep 1", mode="Recommend"))
    cluster.wait_for("advice", "Sized")
    cluster.wait_for("advice", "Complete")
    assert cluster.status("advice")["plan"]["workers"]["value"] >= 2
    assert cluster.pods("advice") == []


@pytest.mark.scenario("A1")
def test_the_users_counts_win_and_the_recommendation_stands_beside_them(cluster: Namespace) -> None:
    manifest = job("mine", "sleep 5", server="sleep 600")
    manifest["spec"]["worker"]["replicas"] = 3
    manifest["spec"]["server"]["replicas"] = 2
    cluster.apply(manifest)
    cluster.eventually(
        "3 workers and 2 servers",
        lambda: len(cluster.pods("mine", "worker")) == 3 and len(cluster.pods("mine", "server")) == 2,
    )
    plan = cluster.status("mine")["plan"]
    assert plan["workers"]["value"] == 3
    assert plan["workers"]["recommended"] == 2
    assert plan["servers"]["value"] == 2
    cluster.wait_for("mine", "Complete")


def test_workers_are_scheduled_by_gpu(cluster: Namespace) -> None:
    manifest = job("gpus", "sleep 3")
    manifest["spec"]["worker"]["replicas"] = 2
    manifest["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 4}}
    cluster.apply(manifest)
    pods = cluster.eventually(
        "2 workers placed", lambda: [p for p in cluster.pods("gpus", "worker") if p["spec"].get("nodeName")]
    )
    cluster.eventually(
        "both placed", lambda: len([p for p in cluster.pods("gpus", "worker") if p["spec"].get("nodeName")]) == 2
    )
    assert pods
    assert len({p["spec"]["nodeName"] for p in cluster.pods("gpus", "worker")}) == 2, (
        "two workers of 4 GPUs share a node of 4"
    )
    cluster.wait_for("gpus", "Complete")


@pytest.mark.parametrize("column", ["STATE", "WORKERS", "SERVERS", "BATCH", "EFFICIENCY", "AGE"])
def test_kubectl_get_shows(cluster: Namespace, column: str) -> None:
    cluster.apply(job("columns", "sleep 1", mode="Recommend"))
    cluster.wait_for("columns", "Complete")
    assert column in cluster.kubectl("get", "tjob", "columns").splitlines()[0]
