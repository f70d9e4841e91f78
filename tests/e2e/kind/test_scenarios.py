"""What only kubelets, quotas and evictions can show, by the numbers of the scenarios that broke other systems."""

import json
from typing import Any

from support.jobs import job
from support.live import Namespace


def resources(manifest: dict[str, Any], role: str, **amounts: dict[str, str]) -> None:
    manifest["spec"][role]["template"]["spec"]["containers"][0]["resources"] = amounts


def test_a_container_killed_for_its_memory_is_told_as_that(cluster: Namespace) -> None:
    manifest = job("hungry", "python3 -c 'x = bytearray(300 << 20); print(len(x))'")
    resources(manifest, "worker", limits={"memory": "64Mi"})
    cluster.apply(manifest)
    cluster.wait_for("hungry", "Failed")
    assert "memory" in cluster.condition("hungry", "Failed")["message"]


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


def test_d8_a_namespace_can_be_deleted_under_a_running_job(cluster: Namespace) -> None:
    cluster.apply(job("doomed", "sleep 600", server="sleep 600"))
    cluster.wait_for("doomed", "PodsReady")
    cluster.cluster.kubectl("delete", "namespace", cluster.name, "--timeout=90s")
    assert cluster.name not in cluster.cluster.kubectl("get", "namespaces", "-o", "name")
