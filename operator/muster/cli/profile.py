"""`muster profile`: the same profiler that the operator puts into a pod, on this machine, with bars and a table."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from muster_profiler.command import PLACEHOLDER, mentions
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from muster.api.report import Point, Report
from muster.cli.exits import Code, Exit
from muster.cli.plan import read_report
from muster.sizing import text

_TAIL_LINES = 20
_SIZES = re.compile(r"[1-9][0-9]*(,[1-9][0-9]*)*")


def run(
    command: list[str],
    *,
    minibatch: str | None,
    warmup_steps: int,
    steps: int,
    deadline_seconds: int,
    report: Path,
) -> None:
    """Profile `command` and write its report."""
    if minibatch is not None and not _SIZES.fullmatch(minibatch):
        raise Exit(Code.USAGE, f"--minibatch {minibatch}: write numbers of samples, for example 32,64,128")
    if minibatch is not None and not mentions(command, os.environ):
        raise Exit(
            Code.USAGE,
            f"--minibatch {minibatch}: the command does not say where each goes. Write '{PLACEHOLDER}' there, in "
            f"single quotes: {' '.join(command)} --batch-size '{PLACEHOLDER}'",
        )
    arguments = [sys.executable, "-m", "muster_profiler", "run", "--progress", "json", "--report", str(report)]
    arguments += [
        "--warmup-steps",
        str(warmup_steps),
        "--steps",
        str(steps),
        "--deadline-seconds",
        str(deadline_seconds),
    ]
    arguments += ["--minibatch", minibatch] if minibatch else []
    console = Console(highlight=False, markup=False)
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        profiler = subprocess.Popen(
            [*arguments, "--", *command],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is told to the profiler as an end, so that it reports what it has
        )
        assert profiler.stderr is not None
        try:
            words = _follow(console, profiler.stderr)
        except KeyboardInterrupt:
            profiler.send_signal(signal.SIGTERM)
            words = _follow(console, profiler.stderr)
        code = profiler.wait()
        if code != 0:
            output.seek(0)
            said = "".join(output.readlines()[-_TAIL_LINES:]).rstrip()
            message = "\n".join(words).replace("muster-profile: ", "") or f"the profiler ended with exit code {code}"
            quoted = f"\nthe last of what the script printed:\n{said}" if said else ""
            raise Exit(Code.USAGE if code == Code.USAGE else Code.FAILED, message + quoted)
    found = read_report(report.read_text(), str(report))
    console.print(table(found))
    parameters = found.parameters
    console.print(
        f"\n{text.volume(parameters.exchanged_bytes)} of parameters in {len(parameters.tensors)} tensors, "
        f"on {found.device.name}",
        soft_wrap=True,
    )
    if largest := found.largest_mini_batch:
        how = "tried" if largest.verified else "predicted"
        console.print(f"the largest mini-batch that fits is {largest.mini_batch}, as {how}", soft_wrap=True)
    for warning in found.warnings:
        console.print(f"warning: {warning.message}", soft_wrap=True)
    console.print(f"the report is in {report}: muster plan -f job.yaml --profile {report}", soft_wrap=True)


def table(report: Report) -> Table:
    """A row a mini-batch."""
    caption = "compute and overhead are times of an iteration; R is overhead / compute"
    result = Table(box=None, pad_edge=False, header_style="bold", caption=caption, caption_justify="left")
    for heading in ("mini-batch", "compute", "overhead", "R", "samples/s", "memory"):
        result.add_column(heading, justify="right")
    result.add_column("")
    for point in report.points:
        result.add_row(*_row(point))
    return result


def _row(point: Point) -> tuple[str, ...]:
    memory = text.size(point.memory.peak_bytes) if point.memory else "not known" if point.fits else ""
    remark = point.problem or ("" if point.fits else "does not fit")
    if point.compute_time is None or point.overhead_time is None:
        return (str(point.mini_batch), "", "", "", "", memory, remark)
    compute, overhead = (time.median_nanoseconds / 1e9 for time in (point.compute_time, point.overhead_time))
    remark = remark or ("" if point.steady else "not steady")
    return (
        str(point.mini_batch),
        text.seconds(compute),
        text.seconds(overhead),
        f"{overhead / compute:.3f}" if compute else "",
        f"{point.mini_batch / (compute + overhead):,.0f}" if compute + overhead else "",
        memory,
        remark,
    )


def _follow(console: Console, events: IO[str]) -> list[str]:
    """Show the profiler's progress to its end; returns the lines that are no progress: what went wrong."""
    words: list[str] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("starting", total=None)
        for line in events:
            event = _event(line)
            if event is None:
                words.append(line.rstrip())
                continue
            kind, state = event.get("event"), event.get("state")
            batch = f"mini-batch {event['miniBatch']}" if event.get("miniBatch") else "the script's own mini-batch"
            if kind == "begin":
                progress.update(bar, total=event["candidates"])
            elif kind == "trial" and state == "started":
                description, done = f"{batch}: starting", event["trial"] - 1
                progress.update(bar, description=description, completed=done, total=event["trials"])
            elif kind == "trial":
                progress.update(bar, description=f"{batch}: {state}", advance=1)
            elif kind == "progress":
                progress.update(bar, description=f"{batch}: {event['iterations']} iterations")
            elif kind == "largest":
                progress.update(bar, description=f"{batch}: whether it fits")
            elif kind == "convolutions":
                what = f"with {event['setting']}" if event["setting"] else "convolution algorithms"
                progress.update(bar, description=f"{batch}: {what}")
    return words


def _event(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
