import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from muster_profiler import trial

SCRIPTS = Path(__file__).parent / "scripts"
PROFILER = Path(__file__).parents[2] / "profiler"
PYTHON = os.environ.get("MUSTER_PROFILER_PYTHON", sys.executable)
"""The Python that scripts are run and profiled with: set it to one that is older, or has other releases of torch."""
OPTIONAL = ("lightning", "transformers")


@dataclass(frozen=True)
class Run:
    """What a script said and, where it was profiled, what the agent learnt."""

    status: int
    output: str
    results: list

    @property
    def losses(self):
        return [line for line in self.output.splitlines() if line.startswith("loss ")]

    @property
    def result(self):
        return self.results[0]

    @property
    def modes(self):
        return [cycle[0] for cycle in self.result["cycles"]]


class Zygote:
    """Scripts run by forks of one Python that has imported torch already."""

    def __init__(self):
        environment = dict(
            os.environ,
            PYTHONPATH=os.pathsep.join([str(PROFILER), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            OMP_NUM_THREADS="1",
            PYTHONUNBUFFERED="1",
        )
        self.process = subprocess.Popen(
            [PYTHON, str(Path(__file__).with_name("zygote.py")), *OPTIONAL],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        *found, self.torch = json.loads(self.process.stdout.readline())
        self.installed = {name for name, there in zip(OPTIONAL, found, strict=True) if there}

    def run(self, script, *arguments, settings=None):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "out"
            path = trial.Settings(directory=directory, **settings).write() if settings is not None else None
            job = {"script": str(SCRIPTS / script), "arguments": arguments, "out": str(out), "settings": path}
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            status = json.loads(self.process.stdout.readline())
            return Run(status, out.read_text(errors="replace"), trial.read_results(directory))


@pytest.fixture(scope="session")
def zygote():
    running = Zygote()
    yield running
    running.process.stdin.close()
    running.process.wait(10)
