import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from muster_profiler import trial
from muster_profiler.agent import Agent
from profiler.made_up import Device, Script

SCRIPTS = Path(__file__).parent / "scripts"
TREE = Path(__file__).parents[2]
PROFILER = TREE / "profiler"
GIVEN = os.environ.get("MUSTER_PROFILER_PYTHON")
"""A Python to run and profile scripts with, instead of those with the newest and the oldest torch."""
newest_only = pytest.mark.parametrize("python", ["newest"], indirect=True)
"""For tests that take long and tell nothing new with the oldest."""


@pytest.fixture(scope="session", params=["newest"] if GIVEN else ["newest", "oldest"])
def python(request):
    """The path of a Python that has torch."""
    if request.param == "newest":
        return GIVEN or sys.executable
    made = subprocess.run([TREE / "dev" / "venv.sh", "oldest"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"the oldest Python and torch cannot be set up here: {made.stderr.strip()}")
    return made.stdout.strip()


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

    def __init__(self, python):
        environment = dict(
            os.environ,
            PYTHONPATH=os.pathsep.join([str(PROFILER), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            OMP_NUM_THREADS="1",
            PYTHONUNBUFFERED="1",
        )
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("zygote.py"))],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.torch = json.loads(self.process.stdout.readline())

    def require(self, major, minor):
        """Skip the test with an older torch."""
        if tuple(int(part) for part in self.torch.split(".")[:2]) < (major, minor):
            pytest.skip(f"torch {self.torch} has no such thing: it came with {major}.{minor}")

    def run(self, script, *arguments, settings=None, imports=()):
        """Skips the test if one of `imports` is missing; they are imported once, for all that follow."""
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "out"
            path = trial.Settings(directory=directory, **settings).write() if settings is not None else None
            job = {"script": str(SCRIPTS / script), "arguments": arguments, "out": str(out), "settings": path}
            self.process.stdin.write(json.dumps({"imports": imports, **job}) + "\n")
            self.process.stdin.flush()
            status = json.loads(self.process.stdout.readline())
            if isinstance(status, str):
                pytest.skip(status)
            return Run(status, out.read_text(errors="replace"), trial.read_results(directory))


@pytest.fixture(scope="session")
def zygote(python):
    running = Zygote(python)
    yield running
    running.process.stdin.close()
    running.process.wait(60)


@pytest.fixture
def made(tmp_path):
    def made(device=None, **settings):
        device = device or Device()
        agent = Agent(
            device, trial.Settings(directory=str(tmp_path), **{"warmup_steps": 6, "settle": False, **settings})
        )
        return Script(agent, device), lambda: trial.read_results(str(tmp_path))[0]

    return made
