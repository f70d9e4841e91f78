"""What commands print and how they end, where no cluster is needed."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import muster as package
import pytest
import yaml
from muster.cli import main
from muster.cli import profile as profile_command
from rich.console import Console
from support.jobs import REPORT, job, report_config_map


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str


Muster = Callable[..., Done]


@pytest.fixture
def muster(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Muster:
    """Runs the console script with these arguments."""
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["muster", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return run


def write(folder: Path, *documents: dict[str, Any]) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    return path


def test_help_names_every_command(muster: Muster) -> None:
    text = muster("--help").stdout
    for command in ("profile", "plan", "run", "submit", "status", "explain", "logs", "operator", "crd"):
        assert f"  {command} " in text


def test_help_imports_nothing_that_is_slow() -> None:
    slow = "pydantic", "kubernetes", "scipy", "rich", "yaml"
    code = f"import sys, muster.cli.app; print([name for name in {slow} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_version_is_the_package_s(muster: Muster) -> None:
    assert muster("--version").stdout == f"muster {package.__version__}\n"


def test_crd_prints_the_definition(muster: Muster) -> None:
    assert yaml.safe_load(muster("crd").stdout)["metadata"]["name"] == "trainingjobs.muster.dev"


def test_plan_prints_each_number_with_its_reason(muster: Muster, tmp_path: Path, report: Path) -> None:
    path = write(tmp_path, job("planned", "true", server="true", profile=None))
    text = muster("plan", "-f", path, "--profile", report).stdout
    for word in ("mini-batch", "workers", "servers", "limited by", "why", "predicted:"):
        assert word in text


def test_plan_is_the_status_s_plan_as_json_and_yaml(muster: Muster, tmp_path: Path, report: Path) -> None:
    path = write(tmp_path, job("planned", "true", server="true", profile=None))
    as_json = json.loads(muster("plan", "-f", path, "--profile", report, "-o", "json").stdout)
    assert as_json["workers"]["value"] == 2
    assert as_json == yaml.safe_load(muster("plan", "-f", path, "--profile", report, "-o", "yaml").stdout)


def test_plan_takes_the_report_from_the_file_s_own_config_map(muster: Muster, tmp_path: Path) -> None:
    done = muster("plan", "-f", write(tmp_path, report_config_map(), job("planned", "true")), "-o", "json")
    assert json.loads(done.stdout)["workers"]["value"] == 2


def test_plan_of_several_jobs_is_one_each(muster: Muster, tmp_path: Path, report: Path) -> None:
    path = write(tmp_path, job("one", "true", profile=None), job("two", "true", profile=None))
    text = muster("plan", "-f", path, "--profile", report).stdout
    assert "one:" in text
    assert "two:" in text


def test_plan_draws_its_curves(muster: Muster, tmp_path: Path, report: Path) -> None:
    path = write(tmp_path, job("drawn", "true", server="true", profile=None))
    assert muster("plan", "-f", path, "--profile", report, "--plot", tmp_path / "plan.svg").code == 0
    assert "<svg" in (tmp_path / "plan.svg").read_text()


@pytest.mark.parametrize("file", ["plan.nonsense", "no/such/folder/plan.png"])
def test_a_plot_that_cannot_be_written_is_refused_by_name(
    muster: Muster, tmp_path: Path, report: Path, file: str
) -> None:
    path = write(tmp_path, job("drawn", "true", profile=None))
    done = muster("plan", "-f", path, "--profile", report, "--plot", tmp_path / file)
    assert done.code == 2
    assert file in done.stderr


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ({"goal": {"speedup": "5000"}}, 3, "The goal of 5000 times one GPU is not met"),
        ({"goal": {"speedup": 5}}, 2, 'spec.goal.speedup: input should be a valid string: write it in quotes, "5"'),
        ({"gaol": {}}, 2, "did you mean goal?"),
    ],
)
def test_plan_ends_with_what_went_wrong(
    muster: Muster, tmp_path: Path, report: Path, change: dict[str, Any], code: int, told: str
) -> None:
    done = muster("plan", "-f", write(tmp_path, job("wrong", "true", profile=None, **change)), "--profile", report)
    assert done.code == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr


RUNS = [
    {"miniBatch": 64, "workers": workers, "servers": servers, "iterationTimeMicroseconds": 150_000 * workers // servers}
    for workers, servers in ((2, 1), (4, 2), (4, 1))
]


def with_runs(muster: Muster, folder: Path, report: Path, runs: object, *more: str) -> Done:
    path, measured = write(folder, job("run", "true", server="true", profile=None)), folder / "runs.yaml"
    measured.write_text(runs if isinstance(runs, str) else yaml.safe_dump(runs))
    return muster("plan", "-f", path, "--profile", report, "--measured", measured, *more)


def test_plan_predicts_from_measured_runs_and_says_so(muster: Muster, tmp_path: Path, report: Path) -> None:
    text = with_runs(muster, tmp_path, report, RUNS).stdout
    assert "predicted: 427 samples/s, 150.0 ms an iteration" in text
    assert "from measured runs: 150.0 to 150.0 ms an iteration. Lemma 2 with the bandwidth of the runs" in text
    assert "the rules alone: 615 samples/s, 104.0 ms an iteration" in text
    predicted = json.loads(with_runs(muster, tmp_path, report, RUNS, "--model", "calibrated", "-o", "json").stdout)
    assert predicted["fit"]["model"] == "calibrated"
    assert predicted["fit"]["runs"] == 3


@pytest.mark.parametrize(
    ("runs", "more", "told"),
    [
        (RUNS[:2], (), "runs.yaml: the runs have 2 sizes of more than one GPU, 2 of them with parameter servers"),
        (RUNS, ("--model", "pollux"), "runs.yaml: Pollux's law knows no parameter servers"),
        (RUNS, ("--model", "guess"), "lemma2"),
        ([*RUNS, {**RUNS[0], "workers": "4"}], (), "runs.yaml: [3].workers: input should be a valid integer"),
        ([{**RUNS[0], "nodes": 1}], (), "runs.yaml: [0]: leave nodes out of a run with servers"),
        ([{"miniBatch": 64, "workers": 2}], (), "runs.yaml: [0].iterationTimeMicroseconds: missing"),
        ([{**RUNS[0], "seconds": 1}], (), "runs.yaml: [0].seconds: unknown field; known here: miniBatch"),
        ("", (), "runs.yaml: a list of runs is expected, each with miniBatch"),
        ("[a: b: c", (), "runs.yaml: "),
    ],
)
def test_runs_that_cannot_be_used_are_refused_with_what_would_do(
    muster: Muster, tmp_path: Path, report: Path, runs: object, more: tuple[str, ...], told: str
) -> None:
    done = with_runs(muster, tmp_path, report, runs, *more)
    assert done.code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_without_runs_and_runs_of_two_jobs_are_refused(muster: Muster, tmp_path: Path, report: Path) -> None:
    path = write(tmp_path, job("one", "true", profile=None), job("two", "true", profile=None))
    done = muster("plan", "-f", path, "--profile", report, "--model", "optimus")
    assert (done.code, "--measured runs.yaml" in done.stderr) == (2, True)
    done = muster("plan", "-f", path, "--profile", report, "--measured", path)
    assert (done.code, "--measured is for one job" in done.stderr) == (2, True)


def test_plan_without_a_profile_says_how_to_get_one(muster: Muster, tmp_path: Path) -> None:
    done = muster("plan", "-f", write(tmp_path, job("bare", "true", profile=None)))
    assert done.code == 2
    assert "muster profile" in done.stderr


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "muster.dev/profile/v2"}', "\x00\xff"])
def test_a_report_that_is_none_is_refused_by_name(muster: Muster, tmp_path: Path, report: Path, content: str) -> None:
    report.write_bytes(content.encode("latin-1"))
    done = muster("plan", "-f", write(tmp_path, job("bad", "true", profile=None)), "--profile", report)
    assert done.code == 2
    assert "report.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_of_the_cluster_without_one_says_so(muster: Muster, tmp_path: Path) -> None:
    done = muster("status", "job", "--kubeconfig", tmp_path / "none")
    assert done.code == 1
    assert f"no way to a cluster: there is no kubeconfig {tmp_path / 'none'}" in done.stderr
    assert "--kubeconfig" in done.stderr


def test_logs_of_a_role_that_there_is_not_names_those_there_are(muster: Muster) -> None:
    done = muster("logs", "job", "--role", "master")
    assert done.code == 2
    assert "--role master: there are profiler, peer, scheduler, server, worker, chief, evaluator" in done.stderr


@pytest.mark.parametrize(
    ("container", "more", "code", "told"),
    [
        ({}, ("--directory", "/nowhere"), 2, "--directory /nowhere: there is no such folder"),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 2}}},
            (),
            3,
            "asks for 2 GPUs at least, and this machine has no",
        ),
    ],
)
def test_what_could_never_start_on_this_machine_is_told_at_once(
    muster: Muster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    container: dict[str, Any],
    more: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    manifest = job("never", "true", profile=None)
    manifest["spec"]["worker"]["template"]["spec"]["containers"][0].update(container)
    done = muster("run", "-f", write(tmp_path, manifest), "--logs", tmp_path / "logs", *more)
    assert done.code == code
    assert told in done.stderr


def test_a_report_that_cannot_be_written_is_told_before_anything_is_profiled(muster: Muster, tmp_path: Path) -> None:
    done = muster("profile", "--report", tmp_path / "none" / "report.json", "--", "false")
    assert done.code == 2
    assert f"--report {tmp_path / 'none' / 'report.json'}: there is no file that could be written" in done.stderr


def test_the_operator_names_a_setting_that_is_wrong(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_METRICS_PORT", "99999999")
    done = muster("operator")
    assert done.code == 2
    assert "MUSTER_METRICS_PORT" in done.stderr


def test_mini_batches_for_a_command_that_takes_none_are_refused_with_the_line_to_write(
    muster: Muster, tmp_path: Path
) -> None:
    done = muster("profile", "--minibatch", "32,64", "--report", tmp_path / "r", "--", "python", "train.py", "")

    assert done.code == 2
    assert "--minibatch 32,64: the command does not say where each goes" in done.stderr
    assert "python train.py  --batch-size '$(MUSTER_MINIBATCH)'" in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "no-such-script.py"], "ScriptFailed: the script ended with exit status 2"),
        (["no-such-command"], "CommandNotFound: cannot start no-such-command: No such file or directory. Is it spelt"),
    ],
)
def test_a_profile_that_fails_says_why_and_quotes_the_script(
    muster: Muster, tmp_path: Path, command: list[str], said: str
) -> None:
    done = muster("profile", "--report", tmp_path / "report.json", "--", *command)

    assert done.code == 1
    assert done.stderr.strip().startswith(f"error: {said}")
    assert ("the last of what the script printed:" in done.stderr) == ("no-such-script.py" in command)


def test_the_bar_says_what_is_being_done_and_other_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    events = (
        {"event": "begin", "candidates": 1, "miniBatches": [32]},
        {"event": "trial", "miniBatch": 32, "state": "started", "trial": 1, "trials": 1},
        {"event": "progress", "miniBatch": 32, "iterations": 140},
        {"event": "trial", "miniBatch": 32, "state": "done"},
        {"event": "convolutions", "miniBatch": 32, "setting": "channels_last"},
    )
    shown = io.StringIO()

    class Drawn(profile_command.Progress):
        """Draws at every change, not some times a second."""

        def update(self, *arguments: Any, **changes: Any) -> None:
            super().update(*arguments, refresh=True, **changes)

    monkeypatch.setattr(profile_command, "Progress", Drawn)
    lines = [*(json.dumps(event) for event in events), "muster-profile: ScriptFailed: why\n"]
    words = profile_command._follow(Console(file=shown, force_terminal=True, width=100), io.StringIO("\n".join(lines)))

    assert words == ["muster-profile: ScriptFailed: why"]
    for said in ("mini-batch 32: 140 iterations", "mini-batch 32: done", "mini-batch 32: with channels_last", "1/1"):
        assert said in shown.getvalue()
