"""The commands that speak to a cluster, on a real API server; what an operator would write is written here."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from muster import jobs
from muster.api.job import TrainingJobSpec
from muster.api.report import Report
from muster.api.status import TrainingJobStatus
from muster.jobs.model import Job, Observed
from muster_dev.cluster import Cluster
from support.jobs import REPORT, job

CRD = Path(__file__).parents[2] / "crds" / "muster.dev_trainingjobs.yaml"


class User:
    """Types commands in one namespace of a cluster."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def muster(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "muster.cli", *map(str, arguments), "-n", self.namespace, *self.cluster.flags]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def decide(self, name: str) -> None:
        """Write the status that the operator would, given a profile."""
        raw = json.loads(self.kubectl("get", "tjob", name, "-o", "json"))
        spec = TrainingJobSpec.model_validate(raw["spec"])
        seen = Job(self.namespace, name, raw["metadata"]["uid"], 1, datetime.now(UTC), spec, TrainingJobStatus())
        report = Report.model_validate(REPORT)
        observed = Observed(seen, config_maps=("report",), report=report, report_digest="sha256:0", report_of="report")
        status = jobs.decide(observed, datetime.now(UTC)).status
        self.kubectl(
            "patch", "tjob", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status.dump()})
        )


@pytest.fixture
def user(api_server: Cluster, namespace: str) -> User:
    api_server.apply(CRD)
    api_server.kubectl("wait", "--for=condition=Established", "crd/trainingjobs.muster.dev")
    return User(api_server, namespace)


def write(folder: Path, *documents: dict[str, Any]) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def test_submit_creates_the_job_and_names_what_it_does_not(user: User, tmp_path: Path) -> None:
    path = write(tmp_path, job("mine", "true"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    done = user.muster("submit", "-f", path)
    assert done.returncode == 0, done.stderr
    assert f"created TrainingJob mine in namespace {user.namespace}" in done.stdout
    assert "left out, because only TrainingJobs are created: Namespace" in done.stdout
    assert json.loads(user.kubectl("get", "tjob", "mine", "-o", "json"))["spec"]["goal"] == {"speedup": "1.5"}
    again = user.muster("submit", "-f", path)
    assert again.returncode == 1
    assert "mine exists already" in again.stderr


def test_explain_and_status_say_what_the_operator_decided(user: User, tmp_path: Path) -> None:
    user.muster("submit", "-f", write(tmp_path, job("mine", "true", server="true")))
    assert "mine has no plan" in user.muster("explain", "mine").stderr
    assert "not seen by an operator yet" in user.muster("status", "mine").stdout
    user.decide("mine")
    explained = user.muster("explain", "mine")
    assert explained.returncode == 0, explained.stderr
    for word in ("2 workers", "Lemma 1", "2 parameter servers", "Lemma 2", "10 Gbit/s as the job states"):
        assert word in explained.stdout
    shown = user.muster("status", "mine").stdout
    for word in ("Profiled", "Sized", "PodsReady", "mini-batch 32"):
        assert word in shown


def test_watching_ends_with_the_job_and_its_exit_code(user: User, tmp_path: Path) -> None:
    user.muster("submit", "-f", write(tmp_path, job("dream", "true", goal={"speedup": "5000"})))
    user.decide("dream")
    done = user.muster("status", "dream", "--watch")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "dream has failed: Infeasible" in done.stderr


@pytest.mark.parametrize("command", ["status", "explain", "logs"])
def test_a_job_that_does_not_exist_is_told_with_its_namespace(user: User, command: str) -> None:
    done = user.muster(command, "nobody")
    assert done.returncode == 1
    assert "nobody" in done.stderr
    assert user.namespace in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_without_pods_has_no_logs(user: User, tmp_path: Path) -> None:
    user.muster("submit", "-f", write(tmp_path, job("quiet", "true")))
    assert "quiet has no pods of role worker" in user.muster("logs", "quiet", "--role", "worker").stderr
