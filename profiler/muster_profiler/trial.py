"""What the two sides of a trial tell each other: the parent (`run`) writes a settings file and names it in the
environment; the agent inside the script's process writes a result file. Never standard output: libraries print there.
"""

from __future__ import annotations

import dataclasses
import glob
import json
import os
from typing import Any

SETTINGS = "MUSTER_PROFILE_TRIAL"

WARM, NATURAL, FROZEN, RESIDENT, MEMORY, STOP = "warm", "natural", "frozen", "resident", "memory", "stop"
CONVOLUTIONS, ESTIMATE = "convolutions", "estimate"
"""What an iteration was for: warming up; timed as the script is; timed with the loader's batches repeated; the same
with the batches already on the device; watched for peak memory; the last. And, in a trial of its own: watched for its
convolutions; and after all others, on tensors without data: watched for the memory that other mini-batches take."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """One trial, as its agent is told."""

    directory: str
    warmup_steps: int = 0
    """Iterations before anything is timed, at least."""
    settle: bool = True
    """Whether to go on warming up until the iteration time is steady."""
    steps: int = 20
    """Iterations timed of each kind, natural and frozen."""
    most_steps: int = 0
    """If more than `steps`: go on up to here, while there is time and the blocks still differ."""
    block: int = 5
    """Iterations timed in a row before the other kind's turn."""
    memory_steps: int = 3
    """Iterations watched for peak memory after the timing. With steps=0 nothing is frozen: the script runs as it is."""
    seconds: float = 15.0
    """For warming up and timing, from the first iteration on."""

    convolution_seconds: float = 0.0
    """If not 0, the trial is for measuring the script's convolutions alone, for so long."""
    estimate: tuple[float, ...] = ()
    """Mini-batches, as multiples of the trial's own, whose memory is to be estimated once all is measured."""
    estimate_seconds: float = 5.0
    """For all iterations of the estimate."""
    declared: bool = False
    """Whether it is a declared entry point: then each batch is an iteration."""
    switch: str = ""
    """A setting of the framework to try: see `Framework.switch`."""

    def write(self) -> str:
        """Write the settings file; its path goes into the environment variable `SETTINGS`."""
        path = os.path.join(self.directory, "settings.json")
        with open(path, "w") as file:
            json.dump(dataclasses.asdict(self), file)
        return path

    @classmethod
    def read(cls, path: str) -> Settings:
        with open(path) as file:
            return cls(**json.load(file))


def write_result(directory: str, result: dict[str, Any]) -> None:
    """Replace this process's result, whole or not at all: the process may be killed at any moment."""
    path = os.path.join(directory, "result-%d.json" % os.getpid())
    with open(path + ".part", "w") as file:
        json.dump(result, file)
    os.replace(path + ".part", path)


def read_results(directory: str) -> list[dict[str, Any]]:
    """The results of all processes of a trial, the one that leads first (rank 0, then most iterations)."""
    results = []
    for path in glob.glob(os.path.join(directory, "result-*.json")):
        with open(path) as file:
            results.append(json.load(file))
    return sorted(results, key=lambda result: (result["rank"], -result["iterations"], -result["fetches"]))
