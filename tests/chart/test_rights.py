"""The operator with the chart's rights only: a whole job, and not one request refused."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chart.conftest import Render
from muster_dev.cluster import Cluster
from support.jobs import job, report_config_map
from support.live import PATIENCE_SECONDS

START = "import os; from muster.operator import run_operator; from muster.settings import Settings; "
START += "run_operator(Settings.from_environment(os.environ))"


def eventually(what: str, found: Callable[[], Any]) -> Any:
    """Polls until something is found."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (seen := found()):
        assert time.monotonic() < end, f"not within {PATIENCE_SECONDS} s: {what}"
        time.sleep(0.2)
    return seen


@pytest.fixture(params=[False, True], ids=["everywhere", "in one namespace"])
def operator_log(
    request: pytest.FixtureRequest, api_server: Cluster, namespace: str, render: Render, artifacts: Path
) -> Iterator[Path]:
    """The log of an operator that runs with the chart's service account, for all namespaces or for this one."""
    release = f"{namespace}-release"
    api_server.kubectl("create", "namespace", release)
    objects = render(*([f"namespaces={{{namespace}}}"] if request.param else []))
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    kinds = ("CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    wanted = json.loads(
        json.dumps([each for each in objects if each["kind"] in kinds]).replace("muster-system", release)
    )
    api_server.apply(*wanted)
    account = api_server.as_service_account("muster", release)
    environment = {
        **os.environ,
        **{each["name"]: each["value"] for each in variables},
        "MUSTER_KUBECONFIG": str(account.kubeconfig),
        "MUSTER_METRICS_PORT": "0",
        "MUSTER_HEALTH_PORT": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    log = artifacts / "operator.log"
    with log.open("w") as sink:
        process = subprocess.Popen([sys.executable, "-c", START], env=environment, stdout=sink, stderr=sink)
    yield log
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    kept = [each for each in wanted if each["kind"] != "CustomResourceDefinition"]
    api_server.kubectl("delete", "-f", "-", stdin="\n---\n".join(map(json.dumps, kept)))
    api_server.delete_namespace(release)


def test_a_job_lives_its_whole_life_within_the_charts_rights(
    api_server: Cluster, namespace: str, operator_log: Path
) -> None:
    def items(*what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = api_server.get(*what, namespace=namespace)["items"]
        return found

    def workers() -> list[dict[str, Any]]:
        return items("pods", "-l", "muster.dev/job=whole,muster.dev/role=worker")

    policy = {"ttlSecondsAfterFinished": 5, "cleanPodPolicy": "All"}
    body = job("whole", "true", server="sleep 600", runPolicy=policy)
    body["spec"]["worker"]["replicas"] = 2
    api_server.apply(report_config_map(), body, namespace=namespace)
    eventually("two workers", lambda: len(workers()) == 2)
    _succeed(api_server, namespace, workers()[0])
    eventually("the job is Complete", lambda: _is_complete(items("tjob")))
    assert items("events.events.k8s.io")
    eventually("the job is deleted when its time to live is over", lambda: not items("tjob"))
    log = operator_log.read_text()
    assert [line for line in log.splitlines() if "forbidden" in line.lower()] == []


def _succeed(cluster: Cluster, namespace: str, pod: dict[str, Any]) -> None:
    """Does the kubelet's part: the training container has ended with exit code 0."""
    container = {
        "name": pod["spec"]["containers"][0]["name"],
        "image": "x",
        "imageID": "x",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-12-01T00:00:00Z"}},
    }
    patch = json.dumps({"status": {"phase": "Succeeded", "containerStatuses": [container]}})
    name = pod["metadata"]["name"]
    cluster.kubectl("patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)


def _is_complete(jobs: list[dict[str, Any]]) -> bool:
    conditions = [each for job in jobs for each in job.get("status", {}).get("conditions", [])]
    return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)
