"""The profiler as it is called in a pod and by `muster profile`: real processes, every kind of start, and what it
leaves behind."""

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from muster.api import report_log
from muster.api.report_log import ReportError
from muster_profiler import profile
from muster_profiler.__main__ import main
from muster_profiler.failures import Problem
from profiler.conftest import PROFILER, SCRIPTS, newest_only

QUICK = ["--warmup-steps", "6", "--steps", "10"]


class Called:
    """One call of the command line, ended."""

    def __init__(self, done, directory):
        self.status, self.log, self.progress = done.returncode, done.stdout, done.stderr
        written = directory / "termination"
        self.termination = written.read_text() if written.exists() else ""

    def read(self):
        return report_log.read(self.log, self.termination)


@pytest.fixture
def call(tmp_path, python):
    def call(*arguments, front="run", options=(), cwd=SCRIPTS, **environment):
        command = [python, "-m", "muster_profiler", front, "--termination-log", str(tmp_path / "termination"), *QUICK]
        env = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(PROFILER), **environment}
        done = subprocess.run(
            [*command, *options, "--", *arguments],
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=600,
        )
        return Called(done, tmp_path)

    return call


@pytest.fixture
def launcher(python):
    """The path of a command that is installed beside this Python, and a port for it that is free."""

    def launcher(name):
        with socket.create_server(("127.0.0.1", 0)) as server:
            return str(Path(python).with_name(name)), str(server.getsockname()[1])

    return launcher


def test_a_script_at_two_candidates_of_which_one_runs_out_of_memory(call, python, tmp_path):
    options = ["--minibatch", "16,64", "--progress", "json", "--report", str(tmp_path / "report.json")]

    called = call(python, "out_of_memory.py", "$(MUSTER_MINIBATCH)", options=options)

    assert called.status == 0, called.progress
    report, digest = called.read()
    assert [(point.mini_batch, point.fits) for point in report.points] == [(16, True), (64, False)]
    assert "out of memory" in report.points[1].problem
    assert report.points[0].compute_time.median_nanoseconds > 0
    assert report.parameters.exchanged_bytes == 36
    assert called.log.splitlines()[-1].startswith("MUSTER-REPORT {")
    assert report_log.digest((tmp_path / "report.json").read_text()) == digest
    told = [json.loads(line) for line in called.progress.splitlines()]
    events = [event for event in told if event["event"] != "progress"]
    assert [(e["event"], e.get("miniBatch"), e.get("state")) for e in events] == [
        ("begin", None, None),
        ("trial", 16, "started"),
        ("trial", 16, "done"),
        ("trial", 64, "started"),
        ("trial", 64, "failed"),
        ("end", None, None),
    ]
    assert events[2]["computeMicroseconds"] == report.points[0].compute_time.median_nanoseconds // 1000
    assert not list(SCRIPTS.glob("muster-profile-*")), "nothing is left behind"


@newest_only
def test_a_module_in_a_process_that_a_shell_starts_and_that_spawns_another(call, python):
    called = call("sh", "-c", f"cd / && cd '{SCRIPTS}' && {python} -m spawns")

    report, _ = called.read()
    assert called.status == 0
    assert (report.mini_batch_applied, report.points[0].mini_batch) == (False, 16)


def test_ranks_that_torchrun_starts_change_over_together(call, launcher):
    torchrun, port = launcher("torchrun")

    called = call(torchrun, "--nproc_per_node", "2", "--master_port", port, "ddp.py")

    assert called.status == 0, called.log
    report, _ = called.read()
    assert report.points[0].mini_batch == 16
    assert "OverheadUnknown" not in {warning.reason for warning in report.warnings}


@newest_only
def test_ranks_that_accelerate_starts_change_over_together(call, launcher):
    accelerate, port = launcher("accelerate")
    options = ["--cpu", "--num_machines", "1", "--num_processes", "2", "--main_process_port", port]

    called = call(accelerate, "launch", *options, "accelerated.py")

    assert called.status == 0, called.log
    report, _ = called.read()
    assert (report.points[0].mini_batch, report.points[0].fetches_per_iteration) == (16, 2)
    assert report.parameters.exchanged_bytes == 4 * 17
    assert "OverheadUnknown" not in {warning.reason for warning in report.warnings}


@newest_only
def test_loader_workers_that_import_the_framework_themselves(call, python):
    called = call(python, "fresh_workers.py")

    assert called.status == 0, called.log
    report, _ = called.read()
    assert (report.points[0].mini_batch, report.parameters.exchanged_bytes) == (16, 4 * 68)


def test_a_declared_entry_point(call):
    called = call("declared:training", front="entry", options=["--minibatch", "4"])

    report, _ = called.read()
    assert (report.points[0].mini_batch, report.parameters.exchanged_bytes) == (4, 36)


def test_a_declared_step_that_uses_neither_optimiser_nor_backward(call):
    called = call("declared:functional", front="entry", options=["--minibatch", "4"])

    assert called.status == 0, called.log
    report, _ = called.read()
    assert (report.points[0].mini_batch, report.points[0].fetches_per_iteration) == (4, 1)
    assert "OverheadUnknown" not in {warning.reason for warning in report.warnings}


def test_the_image_s_own_sitecustomize_still_runs(call, python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['SITE'] = 'the image'\n")
    (tmp_path / "script.py").write_text("import os, sys\nsys.exit('site: ' + os.environ['SITE'])\n")

    called = call(python, str(tmp_path / "script.py"), PYTHONPATH=os.pathsep.join([str(PROFILER), str(tmp_path)]))

    with pytest.raises(ReportError, match="site: the image"):
        called.read()


def test_a_flood_is_cut_and_a_hanging_candidate_ended(call, python, tmp_path):
    """No framework is needed for either: the script is ended before it imports one, or ends without."""
    (tmp_path / "flood.py").write_text("for line in range(200_000):\n    print(f'{line:099}')\n")

    called = call(python, str(tmp_path / "flood.py"))

    assert called.status == 1
    assert len(called.log) < 1 << 20
    assert "KiB more of the script's output left out" in called.log
    with pytest.raises(ReportError, match="No process of the command imported PyTorch"):
        called.read()


def test_a_script_that_hangs_is_ended_by_the_deadline(call, python):
    called = call(python, "hangs.py", "$(MUSTER_MINIBATCH)", options=["--minibatch", "32", "--deadline-seconds", "6"])

    with pytest.raises(ReportError, match=r"still running before its first iteration.*activeDeadlineSeconds") as caught:
        called.read()
    assert (called.status, caught.value.reason) == (1, "DeadlineExceeded")


def test_what_survives_if_the_whole_container_is_killed(python, tmp_path):
    """The kubelet kills the profiler too: the termination message then already says what was being tried."""
    command = [
        python,
        "-m",
        "muster_profiler",
        "run",
        "--termination-log",
        str(tmp_path / "t"),
        "--minibatch",
        "32",
        "--",
    ]
    killer = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL)"

    done = subprocess.run(
        [*command, sys.executable, "-c", killer, "$(MUSTER_MINIBATCH)"], env={"PYTHONPATH": str(PROFILER)}, check=False
    )

    assert done.returncode == -9
    with pytest.raises(ReportError, match=r"Out of memory \(or killed from outside\) at the first mini-batch \(32\)"):
        report_log.read("", (tmp_path / "t").read_text())


def test_no_command_is_wrong_usage(call):
    assert call().status == 2


class TestInPod:
    """The wrapper that is the pod's command."""

    WRAPPER = PROFILER / "muster_profiler" / "inject" / "muster-profile"

    def call(self, tmp_path, *command, **environment):
        log = tmp_path / "termination"
        env = {"PATH": os.environ["PATH"], "MUSTER_TERMINATION_LOG": str(log), **environment}
        done = subprocess.run(
            ["/bin/sh", str(self.WRAPPER), *command], env=env, capture_output=True, text=True, check=False
        )
        return done, log.read_text()

    def test_it_is_executable(self):
        assert self.WRAPPER.stat().st_mode & stat.S_IXOTH

    def test_it_runs_the_profiler_with_the_python_that_the_command_names(self, tmp_path):
        python = tmp_path / "python3.9"
        python.write_text(f'#!/bin/sh\necho "chosen: $0"\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)

        done, termination = self.call(tmp_path, str(python), "-c", "import sys; sys.exit('a word')")

        assert f"chosen: {python}" in done.stdout
        assert (done.returncode, "a word" in termination) == (1, True)

    def test_options_come_by_the_environment(self, tmp_path):
        done, _ = self.call(
            tmp_path, sys.executable, "-c", "pass", "$(MUSTER_MINIBATCH)", MUSTER_PROFILE_MINIBATCHES="8,24"
        )

        assert "2 candidate(s): 8, 24" in done.stderr

    def test_an_image_without_python_says_so(self, tmp_path):
        done, termination = self.call(tmp_path, "train", PATH=str(tmp_path))

        assert done.returncode == 1
        with pytest.raises(ReportError, match=r"no Python 3\.9 or later") as caught:
            report_log.read(done.stdout, termination)
        assert caught.value.reason == "NoPython"


@pytest.mark.parametrize(
    ("report", "writable", "fits"),
    [
        (None, [], True),
        ("report.json", ["/home/u"], True),
        ("/dev/stdout", ["/dev/stdout"], True),
        ("report.json", ["/home"], False),
        ("/", ["/"], False),
    ],
)
def test_only_a_report_that_was_asked_for_must_have_a_place(monkeypatch, capsys, report, writable, fits):
    monkeypatch.setattr(os, "getcwd", lambda: "/home/u")
    monkeypatch.setattr(os, "access", lambda path, _: path in writable)
    monkeypatch.setattr(profile.Profile, "run", lambda _: (_ for _ in ()).throw(Problem("Profiled", "it began")))
    status = main(["run", *(["--report", report] if report else []), "--", "train"])
    assert status == (1 if fits else 2)
    assert ("it began" if fits else "there is no file that could be written") in capsys.readouterr().err
