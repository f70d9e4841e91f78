"""What only kubelets, quotas and evictions can show, by the numbers of the scenarios that broke other systems."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from e2e.kind.conftest import OPERATOR_NAMESPACE
from muster_dev import kind
from support.jobs import job
from support.live import Namespace

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def resources(manifest: dict[str, Any], role: str, **amounts: dict[str, str]) -> None:
    manifest["spec"][role]["template"]["spec"]["containers"][0]["resources"] = amounts


@contextmanager
def lost(cluster: Namespace, node: str) -> Iterator[None]:
    """The node answers nobody: its kubelet and all its containers stand still. Afterwards it is as it was."""
    if node not in kind.WORKERS:
        pytest.skip(f"{node} is no node of the cluster made here: it cannot be taken away")
    subprocess.run(["docker", "pause", node], check=True, capture_output=True)
    try:
        cluster.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{node}", "--timeout=120s")
        # What an administrator says of a machine that is known to be off.
        cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
        yield
    finally:
        subprocess.run(["docker", "unpause", node], check=True, capture_output=True)
        cluster.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=120s")
        cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE}-")


def test_a_container_killed_for_its_memory_is_told_as_that(cluster: Namespace) -> None:
    manifest = job("hungry", "python3 -c 'x = bytearray(300 << 20); print(len(x))'")
    resources(manifest, "worker", limits={"memory": "64Mi"})
    cluster.apply(manifest)
    cluster.wait_for("hungry", "Failed")
    assert "memory" in cluster.condition("hungry", "Failed")["message"]


@pytest.mark.scenario("C4")
def test_c4_an_evicted_worker_restarts_the_job_without_counting(cluster: Namespace) -> None:
    cluster.apply(job("moved", "sleep 15"))
    cluster.wait_for("moved", "PodsReady")
    name, namespace = "moved-worker-1", cluster.name
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    cluster.cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    cluster.eventually("a second attempt", lambda: cluster.status("moved")["attempt"] == 2)
    cluster.wait_for("moved", "Complete")
    assert cluster.status("moved")["restarts"] == 0


@pytest.mark.scenario("C13")
def test_c13_a_quota_is_quoted_in_a_condition_and_obeyed_until_it_is_raised(cluster: Namespace) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    cluster.apply(quota, job("crowded", "sleep 3"))
    told = cluster.eventually(
        "the quota in a condition",
        lambda: (
            "exceeded quota: few" in cluster.condition("crowded", "PodsReady")["message"]
            and cluster.condition("crowded", "PodsReady")
        ),
    )
    assert told["reason"] == "QuotaExceeded"
    cluster.kubectl("delete", "resourcequota", "few")
    cluster.wait_for("crowded", "Complete")


@pytest.mark.scenario("C15")
def test_c15_a_sidecar_does_not_keep_a_job_from_completing(cluster: Namespace) -> None:
    manifest = job("attended", "sleep 1")
    manifest["spec"]["worker"]["template"]["spec"]["containers"].append(
        {
            "name": "sidecar",
            "image": "muster-examples:dev",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sleep", "600"],
        }
    )
    cluster.apply(manifest)
    cluster.wait_for("attended", "Complete")


@pytest.mark.scenario("D8")
def test_d8_a_namespace_can_be_deleted_under_a_running_job(cluster: Namespace) -> None:
    cluster.apply(job("doomed", "sleep 600", server="sleep 600"))
    cluster.wait_for("doomed", "PodsReady")
    cluster.cluster.kubectl("delete", "namespace", cluster.name, "--timeout=180s")
    assert cluster.name not in cluster.cluster.kubectl("get", "namespaces", "-o", "name")


@pytest.mark.scenario("C12")
def test_c12_an_image_that_no_worker_can_pull_is_named_and_fails_by_the_deadline(cluster: Namespace) -> None:
    manifest = job("nopull", "true", runPolicy={"activeDeadlineSeconds": 45})
    manifest["spec"]["worker"]["template"]["spec"]["containers"][0]["image"] = "muster-nowhere:none"
    cluster.apply(manifest)
    cluster.eventually(
        "the image in a condition",
        lambda: "muster-nowhere:none" in cluster.condition("nopull", "PodsReady")["message"],
    )
    cluster.wait_for("nopull", "Failed")
    assert cluster.condition("nopull", "Failed")["reason"] == "DeadlineExceeded"
    cluster.eventually("no pod left to hold anything", lambda: not cluster.pods("nopull"))


@pytest.mark.scenario("C4")
def test_c4_a_lost_node_restarts_the_job_elsewhere_without_counting(cluster: Namespace, installed: Any) -> None:
    manifest = job("stranded", "[ $MUSTER_ATTEMPT -gt 1 ] || sleep 600")
    pod = manifest["spec"]["worker"]["template"]["spec"]
    pod["tolerations"] = [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for taint in ("unreachable", "not-ready")
    ]
    own = {"matchLabels": {"muster.dev/job": "stranded"}}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    pod["topologySpreadConstraints"] = [{**spread, "labelSelector": own}]
    cluster.apply(manifest)
    cluster.wait_for("stranded", "PodsReady")
    operators = installed.get("pods", namespace=OPERATOR_NAMESPACE)["items"]
    kept = {each["spec"]["nodeName"] for each in operators}
    (node,) = {worker["spec"]["nodeName"] for worker in cluster.pods("stranded", "worker")} - kept
    with lost(cluster, node):
        cluster.eventually("a second attempt", lambda: cluster.status("stranded")["attempt"] == 2)
        cluster.wait_for("stranded", "Complete")
        assert {worker["spec"]["nodeName"] for worker in cluster.pods("stranded", "worker")} == kept
    assert (cluster.status("stranded")["restarts"], cluster.status("stranded")["disruptions"]) == (0, 1)
