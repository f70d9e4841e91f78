"""`make gpu-check`: every CUDA part of the profiler on a real GPU, in under five minutes, building nothing.

Prints a table and writes it, with the reports, to $OUT or test-artifacts/gpu-check (`--out DIR` names another).
Exit status: 0 nothing failed, 1 something did, 3 there is no GPU here. Needs a Python with PyTorch for CUDA (.venv's,
or `python3` on PATH), rich, and a GPU of 16 GB or more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "dev"), str(ROOT / "profiler")]

try:
    from rich.console import Console
    from rich.table import Table
except ImportError:
    sys.exit("gpu-check prints its table with rich: run `make venv` or `pip install rich`")

from muster_dev import gpu  # noqa: E402
from muster_dev.gpu import CheckFailedError, Finding, NotHereError  # noqa: E402
from muster_profiler import progress, trial  # noqa: E402
from muster_profiler.failures import Problem  # noqa: E402
from muster_profiler.profile import Options, Profile  # noqa: E402

NO_GPU = 3
SECONDS = 290
PLAIN_SECONDS = 90
SCRIPT = ROOT / "dev" / "gpu_train.py"
ASK = """
import importlib.util, json, torch
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                  "frontEnd": importlib.util.find_spec("cudnn") is not None,
                  "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None}))
"""


class Here:
    """This machine: see `gpu.Machine`."""

    def __init__(self, python: str, front_end: bool, out: Path) -> None:
        self.python, self.front_end, self.out, self.end = python, front_end, out, time.monotonic() + SECONDS

    def plain(self, kind: str, batch: int, iterations: int = 40) -> dict[str, Any]:
        seen: dict[str, Any] = json.loads(self._run([kind, str(batch), str(iterations)], {}))
        return seen

    def watched(self, kind: str, batch: int) -> float:
        with tempfile.TemporaryDirectory() as directory:
            settings = trial.Settings(directory, warmup_steps=100_000, settle=False, steps=0, memory_steps=0)
            site = ROOT / "profiler" / "muster_profiler" / "inject" / "site"
            text = self._run([kind, str(batch), "40"], {"PYTHONPATH": str(site), trial.SETTINGS: settings.write()})
            return float(json.loads(text)["iterationSeconds"])

    def profile(self, name: str, kind: str, batches: tuple[int, ...], **options: Any) -> dict[str, Any]:
        asked = Options(batches, forward=False, deadline_seconds=min(120, self._left()), **options)
        command = [self.python, str(SCRIPT), kind, "$(MUSTER_MINIBATCH)"]
        try:
            report = Profile(command, dict(os.environ), asked, progress.none).run()
        except Problem as problem:
            report = {"problem": {"reason": problem.reason, "message": problem.message}}
        (self.out / f"report-{name}.json").write_text(json.dumps(report, indent=2) + "\n")
        return report

    def _run(self, arguments: list[str], more: dict[str, str]) -> str:
        command, limit = [self.python, str(SCRIPT), *arguments], min(PLAIN_SECONDS, self._left())
        try:
            done = subprocess.run(
                command, env={**os.environ, **more}, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise CheckFailedError(f"the plain script was not over after {limit:.0f} s") from None
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip().splitlines()[-1]
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        if arguments[0] == "compiled":
            raise NotHereError(f"the plain script does not run either: {last}")
        raise CheckFailedError(f"the plain script failed: {last}")

    def _left(self) -> float:
        left = self.end - time.monotonic()
        if left < 15:
            raise CheckFailedError(f"no time was left of {SECONDS} s")
        return left


def facts_here() -> tuple[str, dict[str, Any]] | str:
    """A Python whose PyTorch sees a GPU, and what is there; or why there is none."""
    why = "no Python here has PyTorch"
    for name in (ROOT / ".venv" / "bin" / "python", "python3", "python"):
        python = shutil.which(name)
        if python is None:
            continue
        done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            continue
        facts: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        if facts["device"]:
            return python, facts
        why = f"PyTorch {facts['torch']} of {python} sees none"
    return why


def show(console: Console, title: str, found: list[Finding]) -> None:
    """The table."""
    table = Table(title=title, title_justify="left")
    for heading in ("item", "result", "measured"):
        table.add_column(heading, overflow="fold")
    colours = {"ok": "green", "failed": "bold red", "not here": "yellow"}
    for each in found:
        table.add_row(each.item, f"[{colours[each.result]}]{each.result}[/]", each.measured)
    console.print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("OUT") or ROOT / "test-artifacts" / "gpu-check"
    parser.add_argument("--out", type=Path, default=Path(default), metavar="DIR")
    out = parser.parse_args(arguments).out
    here = facts_here()
    if isinstance(here, str):
        print(f"gpu-check needs a GPU and found none ({here}): nothing was checked.", file=sys.stderr)
        return NO_GPU
    python, facts = here
    out.mkdir(parents=True, exist_ok=True)
    console, began, found = Console(), time.monotonic(), []
    with console.status("starting") as status:
        for finding in gpu.findings(Here(python, facts["frontEnd"], out)):
            found.append(finding)
            status.update(f"{len(found)} items done, last: {finding.item}")
    seconds = round(time.monotonic() - began)
    show(console, f"{facts['device']}, PyTorch {facts['torch']}, cuDNN {facts['cudnn']}, {seconds} s", found)
    rows = [vars(finding) for finding in found]
    (out / "gpu-check.json").write_text(json.dumps({**facts, "seconds": seconds, "items": rows}, indent=2) + "\n")
    return int(any(finding.result == "failed" for finding in found))


if __name__ == "__main__":
    sys.exit(main())
