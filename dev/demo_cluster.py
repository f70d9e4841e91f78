"""`make demo-cluster`: the parameter-server example on kind, to Complete, with the commands that a user types."""

import subprocess
import sys
from pathlib import Path

from muster_dev import kind
from muster_dev.cluster import Cluster

ROOT = Path(__file__).parents[1]
JOB = "parameter-server"


def say(cluster: Cluster, *args: str) -> None:
    """Prints a kubectl command and runs it."""
    print(f"\n$ kubectl {' '.join(args)}", flush=True)
    subprocess.run(cluster.command("kubectl", *args), check=True, cwd=ROOT)


def main() -> None:
    """Brings everything up, and runs the job."""
    cluster = kind.up()
    cluster.drop_interrupted("muster", "muster-system")
    chart = ("upgrade", "--install", "muster", "charts/muster", "--namespace", "muster-system", "--create-namespace")
    values = (
        "--set",
        "image.tag=dev,profiler.image.tag=dev",
    )
    print(f"\n$ helm {' '.join(chart)} {' '.join(values)} --wait", flush=True)
    subprocess.run(cluster.command("helm", *chart, *values, "--wait"), check=True, cwd=ROOT)
    subprocess.run(
        cluster.command("kubectl", "delete", "tjob", JOB, "--ignore-not-found", "--cascade=foreground"), check=True
    )
    say(cluster, "apply", "-f", "examples/pytorch-parameter-server/job.yaml")
    say(cluster, "wait", "--for=condition=Sized", f"tjob/{JOB}", "--timeout=5m")
    print(f"\n$ muster explain {JOB}", flush=True)
    subprocess.run([sys.executable, "-m", "muster.cli", "explain", JOB, *cluster.flags], check=True, cwd=ROOT)
    say(cluster, "wait", "--for=condition=PodsReady", f"tjob/{JOB}", "--timeout=2m")
    say(cluster, "get", "pods", "-l", f"muster.dev/job={JOB}", "-o", "wide")
    say(cluster, "wait", "--for=condition=Complete", f"tjob/{JOB}", "--timeout=10m")
    say(cluster, "logs", f"{JOB}-worker-0", "--tail=15")
    say(cluster, "get", "tjob", JOB)


if __name__ == "__main__":
    main()
