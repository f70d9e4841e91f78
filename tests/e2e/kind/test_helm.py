"""The chart's life on a cluster: installed, upgraded under a running job, removed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.kind.conftest import OPERATOR_NAMESPACE, RELEASE
from support.jobs import job
from support.live import Namespace


@pytest.fixture
def reinstalled(install: Callable[..., None]) -> Iterator[None]:
    yield
    install()


def test_an_upgrade_under_a_running_job_disturbs_nothing(cluster: Namespace, install: Callable[..., None]) -> None:
    cluster.apply(job("during", "sleep 30"))
    cluster.wait_for("during", "PodsReady")
    before = {pod["metadata"]["uid"] for pod in cluster.pods("during", "worker")}
    install("--set", "podAnnotations.upgraded=yes")
    assert {pod["metadata"]["uid"] for pod in cluster.pods("during", "worker")} == before
    cluster.wait_for("during", "Complete")


@pytest.mark.scenario("D8")
def test_uninstall_leaves_nothing_but_the_crd(installed: Any, cluster: Namespace, reinstalled: None) -> None:
    cluster.apply(job("orphan", "sleep 600", mode="Recommend"))
    cluster.wait_for("orphan", "Complete")
    installed.helm("uninstall", RELEASE, "--namespace", OPERATOR_NAMESPACE, "--wait")
    kinds = "deployments,replicasets,pods,services,serviceaccounts,roles,rolebindings,configmaps,leases,networkpolicies"

    def left() -> list[str]:
        names = installed.kubectl("-n", OPERATOR_NAMESPACE, "get", kinds, "-o", "name").split()
        return [name for name in names if name not in ("serviceaccount/default", "configmap/kube-root-ca.crt")]

    cluster.eventually("nothing left of the release", lambda: not left())
    cluster_wide = installed.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name").split()
    assert [thing for thing in cluster_wide if "muster" in thing] == []
    assert "trainingjobs.muster.dev" in installed.kubectl("get", "crd", "-o", "name")
    assert cluster.condition("orphan", "Complete")["status"] == "True", "jobs outlive their operator"
