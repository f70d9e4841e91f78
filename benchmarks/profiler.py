"""How right the profiler is, how much it disturbs, and how long it takes: held against scripts whose truth is known.

    .venv/bin/python benchmarks/profiler.py [--loaded] [--only times|overhead|memory|choice]

`--loaded` keeps every core busy meanwhile. Prints tables and writes them to benchmarks/evidence/profiler-*.json. All on
this machine's CPU: nothing here has been run on a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "profiler"))

from muster_profiler import progress, trial  # noqa: E402
from muster_profiler.memory import Peaks  # noqa: E402
from muster_profiler.profile import Options, Profile  # noqa: E402
from muster_profiler.search import throughput  # noqa: E402

SCRIPTS = ROOT / "benchmarks" / "scripts"
EVIDENCE = ROOT / "benchmarks" / "evidence"
KNOWN = [(20, 0, 0), (20, 2, 0), (20, 10, 0), (100, 9, 0), (40, 20, 1), (10, 30, 2)]
"""Compute ms, load ms, loader workers."""
BATCHES = (16, 32, 64, 128)
PROFILES = 7
KEEPS_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
"""For glibc: else it gives large tensors' memory back after each step, and the page faults add to what differs between
equal runs."""
PLAIN_MILLISECONDS = 10_000
AS_IT_IS = "as it is"
NOTE = "note"
"""The only key of a row that goes below the table."""


def profiled(script: str, *arguments: str, tell: progress.Tell = progress.none, **options: Any) -> Profile:
    """A script's profile, done."""
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    run = Profile(command, dict(os.environ), Options(forward=False, **options), tell)
    run.run()
    return run


def plain(script: str, *arguments: str) -> list[float]:
    """The numbers that a script prints on its last line, run without the profiler."""
    return plain_lines(script, *arguments)[-1]


def plain_lines(script: str, *arguments: str) -> list[list[float]]:
    """The same of each line."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script), *arguments],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    return [[float(word) for word in line.split()[1:]] for line in done.stdout.splitlines()]


def times() -> list[dict[str, Any]]:
    """T_C and T_O against what the script, made of sleeps, sees of itself in a plain run."""
    rows = []
    for compute, load, workers in KNOWN:
        point = profiled("known.py", str(compute), str(load), str(workers), "100000").points[0]
        # As long as the profile: a scheduler treats a process that is new otherwise than one that has slept for long.
        count = PLAIN_MILLISECONDS // (compute + load)
        seen = plain("known.py", str(compute), str(load), str(workers), str(count))
        iteration, truth = (value / 1e6 for value in seen[:2])
        exposed = iteration - truth
        measured = {key: point[key]["medianNanoseconds"] / 1e6 for key in ("computeTime", "overheadTime")}
        measured_compute, measured_overhead = measured["computeTime"], measured["overheadTime"]
        rows.append(
            {
                "compute ms": compute,
                "load ms": load,
                "workers": workers,
                "T_C ms": round(measured_compute, 2),
                "true T_C ms": round(truth, 2),
                "T_C error %": round(100 * (measured_compute / truth - 1), 1),
                "T_O ms": round(measured_overhead, 2),
                "true T_O ms": round(exposed, 2),
                "error of T_O in % of T_C": round(100 * (measured_overhead - exposed) / truth, 1),
            }
        )
    return rows


def overhead() -> list[dict[str, Any]]:
    """What watching (nothing frozen) adds to the iterations that a script itself sees, with and without in turn: in
    time, and in processor time, which other work on the machine changes less."""
    rows = []
    for compute in (0, 5, 50):
        seen: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for _ in range(3):
            for watched in (False, True):
                seen[watched].append(_own(compute, watched))
        (alone, used), (watched_time, watched_used) = (
            [min(values) / 1e3 for values in zip(*seen[key], strict=True)] for key in (False, True)
        )
        rows.append(
            {
                "compute ms": compute,
                "iteration us": round(alone, 1),
                "watched us": round(watched_time, 1),
                "cost %": round(100 * (watched_time / alone - 1), 2),
                "processor us": round(used, 1),
                "watched, processor us": round(watched_used, 1),
                "its cost in % of the iteration": round(100 * (watched_used - used) / alone, 2),
            }
        )
    return rows


def _own(compute: int, watched: bool) -> tuple[float, float]:
    """Nanoseconds of an iteration, and of processor time in it, as the script sees them."""
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ)
        if watched:  # natural iterations without end: what a timed block does, and nothing else
            environment["PYTHONPATH"] = str(ROOT / "profiler" / "muster_profiler" / "inject" / "site")
            settings = trial.Settings(directory=directory, warmup_steps=100_000, settle=False, steps=0, memory_steps=0)
            environment[trial.SETTINGS] = settings.write()
        count = "2000" if not compute else str(6000 // compute // 5)
        command = [sys.executable, str(SCRIPTS / "known.py"), str(compute), "0", "0", count]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        iteration, _, processor = map(float, done.stdout.split()[-3:])
        return iteration, processor


def memory() -> list[dict[str, Any]]:
    """The peak predicted for twice and eight times the largest measured batch, by all that is known, by the estimate
    from the smallest batch alone, and by one line through the smallest batches, against the peak of a plain run."""
    run = profiled("convnet.py", "$(MUSTER_MINIBATCH)", candidates=(64, 128, 256), steps=5, warmup_steps=4)
    points = run.points
    first = Peaks(points[:1], run.tried.estimated)
    rows = []
    for batch in (512, 2048):
        true = plain("convnet.py", str(batch), "truth")[1]
        predicted = Peaks(points, run.tried.estimated).peak(batch) or 0
        margin = points[-1]["memory"]["marginBytes"] / points[-1]["memory"]["peakBytes"]
        (small, less), (large, more) = ((p["miniBatch"], p["memory"]["peakBytes"]) for p in points[:2])
        line = more + (more - less) / (large - small) * (batch - large)
        rows.append(
            {
                "mini-batch": batch,
                "true peak MiB": round(true / 2**20),
                "predicted MiB": round(predicted / 2**20),
                "error %": round(100 * (predicted / true - 1), 1),
                "with the margin, %": round(100 * (predicted * (1 + margin) / true - 1), 1),
                "from 64 and the estimate alone, error %": round(100 * ((first.peak(batch) or 0) / true - 1), 1),
                "one line through 64 and 128, error %": round(100 * (line / true - 1), 1),
            }
        )
    return rows


def choice() -> list[dict[str, Any]]:
    """An image classifier at four mini-batches, profiled several times: the mini-batch and the setting of algorithms
    that each report says are best, against the best of all combinations tried one by one, by throughput; and what
    finding out took each way."""
    os.environ.update(KEEPS_MEMORY)  # of the profiled and of the plain runs
    imported = _importing()
    chosen: list[tuple[int, str]] = []
    reported: dict[tuple[int, str], list[float]] = {}
    seen: dict[tuple[int, str], list[float]] = {}
    seconds, starting, searched = [], [], 0.0
    for _ in range(PROFILES):  # in turn with the plain runs, because a machine drifts
        said, worth, took, runs = _said()
        chosen.append(max((key for key in said if worth or key[1] == AS_IT_IS), key=lambda key: said[key]))
        for key, rate in said.items():
            reported.setdefault(key, []).append(rate)
        seconds.append(took)
        starting.append(runs * imported)
        began = time.monotonic()
        _search(seen)
        searched += time.monotonic() - began
    true = {key: statistics.median(values) for key, values in seen.items()}
    best = max(true, key=lambda key: true[key])
    rows: list[dict[str, Any]] = [
        {
            "mini-batch": key[0],
            "convolutions": key[1],
            "samples/s, true": round(true[key]),
            "from": round(min(seen[key])),
            "to": round(max(seen[key])),
            "profiled": round(statistics.median(reported[key])) if key in reported else "",
            "": " ".join([f"chosen {chosen.count(key)} times"] * (key in chosen) + ["best"] * (key == best)),
        }
        for key in true
    ]
    regrets = sorted(100 * (1 - true[key] / true[best]) for key in chosen)
    text = [
        f"regret {statistics.median(regrets):.1f} % in the median of {PROFILES} profiles",
        f"from {regrets[0]:.1f} to {regrets[-1]:.1f} %",
        f"report after {statistics.median(seconds):.0f} s, {statistics.median(starting):.0f} s of it importing PyTorch",
        f"exhaustive search {searched / PROFILES:.0f} s",
    ]
    return [*rows, {NOTE: "; ".join(text)}]


def _importing() -> float:
    """Seconds that starting Python and importing what a script imports take."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch, torch.utils.data, torch._dynamo"], check=True)
    return time.monotonic() - began


def _said() -> tuple[dict[tuple[int, str], float], bool, float, int]:
    """Of one profile: throughput by mini-batch and setting, whether a setting is recommended, seconds, runs."""
    runs = []

    def tell(event: str, **facts: Any) -> None:
        if event == "convolutions" or facts.get("state") == "started":
            runs.append(event)

    began = time.monotonic()
    report = profiled("convnet.py", "$(MUSTER_MINIBATCH)", tell=tell, candidates=BATCHES).report()
    seconds = time.monotonic() - began
    points = {point["miniBatch"]: point for point in report["points"]}
    said = {(batch, AS_IT_IS): throughput(point) for batch, point in points.items()}
    for tried in report.get("convolutionTrials", []):
        batch = tried["miniBatch"]
        said[batch, tried["setting"]] = throughput(dict(points[batch], computeTime=tried["computeTime"]))
    worth = any(warning["reason"] == "FasterSetting" for warning in report["warnings"])
    return said, worth, seconds, len(runs)


def _search(seen: dict[tuple[int, str], list[float]]) -> None:
    """Try every combination once more."""
    for setting in (AS_IT_IS, "channels_last"):
        more = [setting] if setting != AS_IT_IS else []
        found = plain_lines("convnet.py", ",".join(map(str, BATCHES)), *more, "truth")
        for batch, (rate, _) in zip(BATCHES, found, strict=True):
            seen.setdefault((batch, setting), []).append(rate)


def _spin() -> None:
    while True:
        pass


@contextlib.contextmanager
def load(wanted: bool) -> Iterator[None]:
    """Every core busy, if wanted."""
    count = (os.cpu_count() or 1) if wanted else 0
    spinners = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for spinner in spinners:
        spinner.start()
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()


def main() -> None:
    parts = {"times": times, "overhead": overhead, "memory": memory, "choice": choice}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loaded", action="store_true")
    parser.add_argument("--only", choices=parts, action="append")
    asked = parser.parse_args()
    console = Console()
    EVIDENCE.mkdir(exist_ok=True)
    for name in asked.only or parts:
        before = os.getloadavg()[0]
        with load(asked.loaded):
            rows = parts[name]()
        table = Table(title=f"{name}{', loaded' if asked.loaded else ''} (load average before: {before:.1f})")
        for key in rows[0]:
            table.add_column(key)
        table.caption = "; ".join(row[NOTE] for row in rows if NOTE in row)
        for row in rows:
            if NOTE in row:
                continue
            table.add_row(*(str(row.get(key, "")) for key in rows[0]))
        console.print(table)
        path = EVIDENCE / f"profiler-{name}{'-loaded' if asked.loaded else ''}.json"
        path.write_text(json.dumps({"loadAverage": before, "cpus": os.cpu_count(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
