"""`make demo`: the parameter-server example on this machine, from script to trained net, as a user would run it."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
JOB = "examples/pytorch-parameter-server/job.yaml"


def main() -> int:
    """Runs it; 0 where the loss fell and the accuracy is one that only a trained net has."""
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as logs:
        command = [str(Path(sys.executable).parent / "muster"), "run", "-f", JOB, "--logs", logs]
        print(f"$ muster run -f {JOB}\n", flush=True)
        # This environment's Python is the one that has torch.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False)
        if done.returncode != 0:
            return done.returncode
        log = (Path(logs) / "parameter-server" / "worker-0.log").read_text()
    losses = [float(found) for found in re.findall(r"loss ([0-9.]+)", log)]
    accuracy = float(re.findall(r"accuracy ([0-9.]+)", log)[0])
    print(f"\nThe loss fell from {losses[0]} to {losses[-1]}; {accuracy:.1%} of the test digits are recognised.")
    return 0 if losses[-1] < losses[0] / 2 and accuracy > 0.8 else 1


if __name__ == "__main__":
    sys.exit(main())
