"""`muster run` as a user runs it: a process of its own, real scripts, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from support.jobs import REPORT, job, report_config_map

EXAMPLES = Path(__file__).parents[2] / "examples"
MUSTER = [sys.executable, "-m", "muster.cli"]


def environment() -> dict[str, str]:
    """With this environment's Python as the user's `python3`."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def muster(folder: Path, *arguments: str | Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MUSTER, *map(str, arguments)], cwd=folder, env=environment(), capture_output=True, text=True, timeout=timeout
    )


def write(folder: Path, *documents: dict[str, Any]) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return path


def losses(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"\[worker-0\] epoch .* loss ([0-9.]+)", output)]


def started(output: str, role: str) -> int:
    return len(set(re.findall(rf"started ({role}-[0-9]+)", output)))


@pytest.mark.parametrize("example", ["pytorch-parameter-server", "pytorch-ddp"])
def test_an_example_is_profiled_sized_and_trained(tmp_path: Path, example: str) -> None:
    done = muster(tmp_path, "run", "-f", EXAMPLES / example / "job.yaml", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    planned = re.search(r"Sized: workers: (\d+), servers: (\d+)", done.stdout)
    assert planned is not None, done.stdout
    assert (started(done.stdout, "worker"), started(done.stdout, "server")) == (int(planned[1]), int(planned[2]))
    assert started(done.stdout, "worker") >= 2
    seen = losses(done.stdout)
    assert seen[-1] < seen[0] / 2, "the loss does not fall"
    accuracy = re.search(r"\[worker-0\] accuracy ([0-9.]+)", done.stdout)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.8
    assert "MUSTER-REPORT" not in done.stdout, "the report is for Muster, not for the user"
    assert "Lemma 1" in done.stdout
    folder = tmp_path / "muster-run" / yaml.safe_load((EXAMPLES / example / "job.yaml").read_text())["metadata"]["name"]
    assert "accuracy" in (folder / "worker-0.log").read_text()
    assert json.loads((folder / "report.json").read_text())["format"] == "muster.dev/profile/v1"


def test_every_process_is_told_who_and_where_all_are(tmp_path: Path) -> None:
    script = 'echo "$MUSTER_ROLE $MUSTER_INDEX of $MUSTER_WORKERS+$MUSTER_SERVERS at $(MUSTER_MINIBATCH):'
    script += ' $MUSTER_WORKER_HOSTS|$MUSTER_SERVER_HOSTS"; sleep 2'
    manifest = job("told", script, server=script)
    manifest["spec"]["worker"]["replicas"] = manifest["spec"]["server"]["replicas"] = 2
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), manifest))
    assert done.returncode == 0, done.stdout + done.stderr
    said = set(re.findall(r"\[(\w+-\d)\] (\w+) (\d) of 2\+2 at 32: (\S+)", done.stdout))
    assert {who for who, *_ in said} == {"worker-0", "worker-1", "server-0", "server-1"}
    assert all(who == f"{role}-{index}" for who, role, index, _ in said)
    (hosts,) = {hosts for *_, hosts in said}
    addresses = re.split(r"[,|]", hosts)
    assert len(set(addresses)) == 4, "each process has an address of its own"
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", address) for address in addresses)


def test_the_output_says_what_of_the_manifest_is_left_out(tmp_path: Path) -> None:
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), job("plain", "true")))
    assert "image muster-examples:dev" in done.stdout


def test_servers_that_serve_for_ever_are_ended_when_the_workers_are_done(tmp_path: Path) -> None:
    path = write(tmp_path, report_config_map(), job("served", "sleep 1", server="exec sleep 86399"))
    assert muster(tmp_path, "run", "-f", path).returncode == 0
    assert alive("86399") == []


def test_a_script_that_crashes_fails_the_job_with_its_last_words(tmp_path: Path) -> None:
    script = "echo about to fail; echo 'ValueError: no such column' >&2; exit 3"
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), job("crash", script)))
    assert done.returncode == 1
    assert "ValueError: no such column" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_script_that_fails_once_is_started_again(tmp_path: Path) -> None:
    manifest = job("again", 'echo "attempt $MUSTER_ATTEMPT"; test "$MUSTER_ATTEMPT" = 2')
    manifest["spec"]["runPolicy"]["backoffLimit"] = 1
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), manifest))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "attempt 2" in (tmp_path / "muster-run" / "again" / "worker-0.attempt-2.log").read_text()


def test_a_script_that_crashes_while_profiled_fails_the_job_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nraise SystemExit('the data set is not there')\n")
    manifest = job("unprofiled", "", profile=None)
    manifest["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["python3", "train.py"]
    done = muster(tmp_path, "run", "-f", write(tmp_path, manifest), timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the data set is not there" in done.stderr


def test_a_command_that_does_not_exist_fails_the_job_and_is_named(tmp_path: Path) -> None:
    manifest = job("missing", "")
    manifest["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["no-such-program"]
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), manifest))
    assert done.returncode == 1
    assert "no-such-program" in done.stderr


def test_a_goal_that_cannot_be_reached_is_infeasible(tmp_path: Path) -> None:
    path = write(tmp_path, report_config_map(), job("dream", "true", goal={"speedup": "5000"}))
    done = muster(tmp_path, "run", "-f", path)
    assert done.returncode == 3
    assert "The goal of 5000 times one GPU is not met" in done.stderr


def test_a_recommendation_ends_with_the_plan(tmp_path: Path) -> None:
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), job("advice", "true", mode="Recommend")))
    assert done.returncode == 0
    assert started(done.stdout, "worker") == 0
    assert "2 workers" in done.stdout


def test_a_report_can_be_given_in_place_of_profiling(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps(REPORT))
    path = write(tmp_path, job("given", "true", profile=None))
    done = muster(tmp_path, "run", "-f", path, "--profile", tmp_path / "report.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert started(done.stdout, "profiler") == 0


def test_a_wrong_manifest_is_wrong_usage_told_by_line_and_field(tmp_path: Path) -> None:
    manifest = job("wrong", "true")
    manifest["spec"]["goal"] = {"efficiencyPercnt": 80}
    path = write(tmp_path, manifest)
    line = path.read_text().splitlines().index("    efficiencyPercnt: 80") + 1
    done = muster(tmp_path, "run", "-f", path)
    assert done.returncode == 2
    assert f"job.yaml:{line}: spec.goal.efficiencyPercnt: unknown field; did you mean efficiencyPercent?" in done.stderr


def test_a_profile_that_is_not_in_the_file_is_wrong_usage(tmp_path: Path) -> None:
    done = muster(tmp_path, "run", "-f", write(tmp_path, job("absent", "true")))
    assert done.returncode == 2
    assert "takes its profile from ConfigMap report, which is not in" in done.stderr


def test_an_image_s_entrypoint_cannot_be_run(tmp_path: Path) -> None:
    manifest = job("imaged", "true", server="true")
    del manifest["spec"]["server"]["template"]["spec"]["containers"][0]["command"]
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), manifest))
    assert done.returncode == 2
    assert "spec.server.template.spec.containers[train].command is missing" in done.stderr


def test_a_suspended_job_does_not_run(tmp_path: Path) -> None:
    manifest = job("resting", "true", runPolicy={"suspend": True})
    done = muster(tmp_path, "run", "-f", write(tmp_path, report_config_map(), manifest))
    assert done.returncode == 1
    assert "Suspended" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupt_ends_every_process_and_what_they_started(tmp_path: Path, number: signal.Signals) -> None:
    # One child in a session of its own, as launchers start them; one that does not hear SIGTERM.
    script = "setsid sleep 86397 & trap '' TERM; sleep 86397 & echo ready; wait"
    manifest = job("long", script, server="exec sleep 86397")
    process = subprocess.Popen(
        [*MUSTER, "run", "-f", str(write(tmp_path, report_config_map(), manifest))],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell's background jobs do not hear Ctrl-C, nor what they start; this suite may be one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    ready = 0
    for line in process.stdout:
        ready += "] ready" in line
        if ready == 2:
            break
    assert len(alive("86397")) >= 5
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130, output
    assert alive("86397") == []


def alive(mark: str) -> list[str]:
    """Processes with `mark` among their arguments, those given a moment to be reaped left out."""
    for _ in range(20):
        found = [
            " ".join(process.info["cmdline"])
            for process in psutil.process_iter(["cmdline", "status"])
            if mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE
        ]
        if not found:
            break
        time.sleep(0.05)
    return found
