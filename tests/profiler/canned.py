"""Results of trials as the agent writes them, made up: for tests of what the parent makes of them."""

from muster_profiler import trial
from muster_profiler.process import Outcome

MS = 1_000_000
GIB = 1 << 30


def cycles(natural, frozen, resident=None, *, blocks=3, per_block=5, fetches=1):
    """Blocks of iterations of the given milliseconds, each block's first one dropped and three times as long."""
    kinds = [(trial.NATURAL, natural), (trial.FROZEN, frozen), (trial.RESIDENT, resident)]
    made, block = [(trial.WARM, 0, False, 9 * natural * MS, fetches)] * 3, 0
    for _ in range(blocks):
        for mode, milliseconds in kinds:
            if milliseconds is not None:
                block += 1
                made.append((mode, block, False, 3 * milliseconds * MS, fetches))
                made += [(mode, block, True, round((milliseconds + 0.01 * i) * MS), fetches) for i in range(per_block)]
    return made


def result(**changes):
    """A leading process's result: ResNet-like, 100 ms of compute and 10 ms of overhead on a CPU."""
    return {
        "final": True,
        "estimating": False,
        "ended": "stopped",
        "rank": 0,
        "iterations": 40,
        "fetches": 41,
        "clock": "fetch",
        "seen": {"fetches": 41, "steps": 41, "backwards": 41},
        "framework": {"name": "PyTorch", "version": "2.6.0"},
        "device": {"kind": "cpu", "name": "A CPU", "memoryBytes": 8 * GIB, "count": 1},
        "parameters": {
            "bytes": 4400,
            "exchangedBytes": 4000,
            "tensors": [
                {"name": "layer.weight", "elements": 990, "bytes": 3960, "trainable": True},
                {"name": "layer.bias", "elements": 10, "bytes": 40, "trainable": True},
                {"name": "stem.weight", "elements": 100, "bytes": 400, "trainable": False},
            ],
        },
        "cycles": cycles(110, 100),
        "frozen": True,
        "loaderBatchSize": 32,
        "passSamples": None,
        "loaderWorkers": 0,
        "prefetched": 0,
        "samples": 32,
        "collateNanoseconds": [2 * MS] * 15,
        "updateNanoseconds": [5 * MS] * 18,
        "memory": {"startUpBytes": GIB // 2, "forwardBackwardBytes": 2 * GIB, "optimizerStepBytes": GIB},
        "estimates": [],
        "environment": {"python": "3.12.1", "torch": "2.6.0"},
        "warnings": [],
        "error": None,
    } | changes


def outcome(*results, status=0, tail="", timed_out=False, over_limit=False, seconds=10.0):
    return Outcome(list(results), status, tail, timed_out, over_limit, seconds)
