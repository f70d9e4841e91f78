"""How long a large plan takes on one core, and where the time goes.

16 candidate mini-batches, 50 convolution layers in 3 passes with 8 algorithms each, 161 tensors, up to 64 GPUs and 32
servers. Run: `.venv/bin/python benchmarks/plan_speed.py [--repeat N]`. Prints the median of each part and of the whole.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "operator"))

from muster.api.inventory import Inventory, Node
from muster.api.job import Framework, Goal, Scaling, Workspace
from muster.api.report import Report
from muster.sizing import Limits, convolution, plan
from muster.sizing.algorithms import algorithms
from muster.sizing.goals import Target
from muster.sizing.joint import solve
from muster.sizing.minibatch import candidates
from muster.sizing.planner import digest
from muster.sizing.problem import Problem

BATCHES = [8 * step for step in range(1, 17)]
LAYERS, ALGORITHMS, TENSORS = 50, 8, 161
GOAL = Goal(efficiency_percent=70)
LIMITS = Limits(
    framework=Framework.TENSORFLOW,
    scaling=Scaling.WEAK,
    uses_servers=True,
    gpus_per_worker=1,
    max_workers=64,
    max_servers=32,
    server_bandwidth=1.25e9,
    worker_bandwidth=1.25e9,
    workspace=Workspace.SEPARATE,
)
CLUSTER = Inventory(tuple(Node(f"node-{i}", 8, 64_000, 2**38) for i in range(8)))


def report(seed: int = 1) -> Report:
    """A profile of that size; times and workspaces are random, in the proportions of a real net."""
    dice = random.Random(seed)
    timing = {"lowerQuartileNanoseconds": 0, "upperQuartileNanoseconds": 0, "cycles": 20}

    def timed(nanoseconds: float) -> dict[str, int]:
        low, high = round(nanoseconds * 0.98), round(nanoseconds * 1.02)
        interval = {"intervalLowNanoseconds": low, "intervalHighNanoseconds": high}
        return timing | interval | {"medianNanoseconds": round(nanoseconds)}

    points, layers = [], []
    for batch in BATCHES:
        points.append(
            {
                "miniBatch": batch,
                "fits": True,
                "computeTime": timed(1e8 + 4e6 * batch),
                "overheadTime": timed(4e6),
                "memory": {"peakBytes": 2**30 + batch * 2**26},
            }
        )
        for layer in range(LAYERS):
            for direction in ("forward", "inputGradient", "weightGradient"):
                layers.append(
                    {
                        "shape": f"layer {layer}",
                        "direction": direction,
                        "miniBatch": batch,
                        "used": "0",
                        "algorithms": [
                            {
                                "name": str(i),
                                "kind": "GEMM",
                                "timeNanoseconds": round(dice.uniform(0.3, 1) * 4e3 * batch / (1 + i)),
                                "workspaceBytes": round(dice.uniform(0.5, 1) * i * 2**19 * batch),
                            }
                            for i in range(ALGORITHMS)
                        ],
                    }
                )
    sizes = dice.choices(SIZES, k=TENSORS)
    tensors = [{"name": f"t{i}", "elements": size, "bytes": 4 * size} for i, size in enumerate(sizes)]
    exchanged = 4 * sum(sizes)
    return Report.model_validate(
        {
            "format": "muster.dev/profile/v1",
            "device": {"kind": "cuda", "name": "benchmark", "memoryBytes": 16 * 2**30},
            "framework": {"name": "tensorflow", "version": "2"},
            "parameters": {"bytes": exchanged, "exchangedBytes": exchanged, "tensors": tensors},
            "points": points,
            "convolutions": layers,
        }
    )


SIZES = [64, 256, 1024, 16_384, 65_536, 262_144, 1_048_576]


def median_milliseconds(part: Callable[[], object], repeat: int) -> float:
    """Of `repeat` runs."""
    runs = []
    for _ in range(repeat):
        start = time.perf_counter()
        part()
        runs.append(time.perf_counter() - start)
    return statistics.median(runs) * 1e3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.perf_counter()
    from scipy.optimize import milp  # noqa: F401 - its import is measured apart: a process pays it once

    solver = (time.perf_counter() - start) * 1e3
    measured = report()
    fitting = candidates(measured)[0]
    choices = [found for one in fitting if (found := algorithms(measured, one, Workspace.SEPARATE))]
    problem = Problem(measured, Target.of(GOAL), LIMITS, CLUSTER)
    parts = {
        "digest of the inputs": lambda: digest(measured, GOAL, LIMITS, CLUSTER),
        f"algorithms by one limit, {len(fitting)} batches": lambda: [
            convolution.one_limit(one.rows, one.bound, shared=False) for one in choices
        ],
        "algorithms by the 0/1 programme, chosen batch": lambda: convolution.select(
            choices[-1].rows, choices[-1].bound, shared=False
        ),
        "workers and servers, all batches": lambda: solve(
            Problem(measured, Target.of(GOAL), replace(LIMITS, workspace=Workspace.OFF), CLUSTER).models, problem.target
        ),
    }
    total = median_milliseconds(lambda: plan(measured, GOAL, LIMITS, CLUSTER), repeat)
    told = 0.0
    print(f"{'part':50}{'ms':>8}{'share':>8}")
    for name, part in parts.items():
        spent = median_milliseconds(part, repeat)
        told += spent
        print(f"{name:50}{spent:8.0f}{spent / total:8.0%}")
    print(f"{'sentences, alternatives, intervals and the rest':50}{total - told:8.0f}{1 - told / total:8.0%}")
    print(f"{'the whole plan':50}{total:8.0f}{1:8.0%}")
    every = median_milliseconds(
        lambda: [convolution.select(one.rows, one.bound, shared=False) for one in choices], repeat
    )
    exact = median_milliseconds(lambda: convolution.exact(choices[-1].rows, choices[-1].bound), repeat)
    print(f"\nnot part of a plan: the 0/1 programme of all {len(fitting)} batches {every:.0f} ms;")
    print(
        f"HiGHS for one batch where greedy is not within the gap {exact:.0f} ms; importing HiGHS once {solver:.0f} ms"
    )


if __name__ == "__main__":
    main()
