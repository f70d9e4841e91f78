"""What the operator costs and bears: `python benchmarks/controller.py throughput|scale`.

`throughput`, on etcd, kube-apiserver, controller manager, scheduler and kwok as plain processes of this machine, on the
same cores: the operator against a bare client that creates the same pods on the same server as fast as it can.
`scale`, on etcd and kube-apiserver: a start with many finished jobs, and with many pods of others. Both print Markdown
and draw, as in docs/performance.md.
"""

import sys

sys.path.insert(1, sys.path[0] + "/../dev")

import argparse
import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from load.cluster import cluster, count, create_all, job, multiply, namespace, pod_like
from load.drawings import Panel, draw
from load.process import Operator, cpu_seconds
from muster.api import labels
from muster.cluster.client import JOBS, PODS, Client
from muster.cluster.errors import ApiError
from muster_dev.api_server import CONTROL_PLANE, LocalControlPlane

_IMAGES = Path(__file__).parent.parent / "docs" / "images"
_AT_ONCE = 32
_UNLIMITED = {"write_rate": 10_000, "write_burst": 10_000, "workers": 16}
_WORKERS, _SERVERS = 3, 2
_STARTS = 3  # of which the shortest counts: what else the machine does only makes them longer

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Load:
    """So many jobs at once: seconds of the operator and of the bare client, and what the operator says of itself."""

    jobs: int
    created: float
    completed: float
    bare: float
    writes: dict[str, float]
    reconcile: Triple
    wait: Triple
    cpu: float
    memory_mib: float

    @property
    def pods(self) -> int:
        return self.jobs * (_WORKERS + _SERVERS)


@dataclass(frozen=True)
class Start:
    """A start of the operator: seconds until it was ready, and until it had nothing to do any more."""

    with_what: str
    jobs: int
    ready: float
    cpu: float
    server_cpu: float
    quiet: float
    mib: float
    peak_mib: float


async def throughput(sizes: Sequence[int]) -> None:
    """Pods and jobs a second, writes a job, latencies: for each number of jobs anew."""
    async with cluster(CONTROL_PLANE, nodes=40) as (plane, client):
        loads = [await _load(plane, client, jobs) for jobs in sizes]
    _table(f"jobs of {_WORKERS} workers and {_SERVERS} servers", [f"{load.jobs}" for load in loads], _rows(loads))
    shares = ("50th", "90th", "99th percentile")
    draw(
        _IMAGES / "operator-throughput.png",
        Panel(
            "pods a second",
            {
                "bare client": [(load.jobs, load.pods / load.bare) for load in loads],
                "operator": [(load.jobs, load.pods / load.created) for load in loads],
            },
        ),
        Panel(
            "a reconcile, seconds",
            {name: [(load.jobs, load.reconcile[i]) for load in loads] for i, name in enumerate(shares)},
        ),
    )


async def _load(plane: LocalControlPlane, client: Client, jobs: int) -> Load:
    ours, bare = await namespace(client, f"operator-{jobs}"), await namespace(client, f"bare-{jobs}")
    pods = jobs * (_WORKERS + _SERVERS)
    async with Operator(plane, **_UNLIMITED) as operator:
        began, spent = operator.age, operator.cpu_seconds
        await create_all(client, JOBS, ours, [job(f"job-{i}", _WORKERS, _SERVERS) for i in range(jobs)])
        while await count(client, PODS, ours, labels.JOB) < pods:  # noqa: ASYNC110 - a server is polled
            await asyncio.sleep(0.2)
        created = operator.age - began
        (example,) = [raw async for items, _ in client.pages(PODS, ours, limit=1) for raw in items]
        while await _finish_running(client, ours) < jobs:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        completed = operator.age - began
        await operator.quiet()
        writes = await operator.writes()
        reconcile = await operator.percentiles("muster_reconcile_duration_seconds")
        wait = await operator.percentiles("muster_queue_wait_seconds")
        cpu, memory = operator.cpu_seconds - spent, operator.memory_mib
    seconds = await create_all(client, PODS, bare, [pod_like(example, f"pod-{index}") for index in range(pods)])
    return Load(jobs, created, completed, seconds, writes, reconcile, wait, cpu, memory)


async def _finish_running(client: Client, where: str) -> int:
    """Let worker 0 of every job end well once it runs; returns how many jobs are Complete."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def succeed(pod: dict[str, Any]) -> None:
        state = {"name": "train", "image": "x", "imageID": "x", "ready": False, "restartCount": 0}
        ended = state | {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
        status = {"phase": "Succeeded", "containerStatuses": [ended]}
        async with gate:
            with contextlib.suppress(ApiError):
                await client.merge(PODS, where, f"{pod['metadata']['name']}/status", {"status": status})

    selector = f"{labels.ROLE}=worker,{labels.INDEX}=0"
    pods = [raw async for items, _ in client.pages(PODS, where, selector=selector) for raw in items]
    await asyncio.gather(*(succeed(pod) for pod in pods if pod["status"].get("phase") == "Running"))
    return await _complete(client, where)


async def _complete(client: Client, where: str) -> int:
    pages = client.pages(JOBS, where)
    return sum([(raw.get("status") or {}).get("state") == "Complete" async for items, _ in pages for raw in items])


def _rows(loads: Sequence[Load]) -> dict[str, list[str]]:
    def each(text: Callable[[Load], str]) -> list[str]:
        return [text(load) for load in loads]

    def triple(values: Triple) -> str:
        return " / ".join(f"{value:.2g}" for value in values) + " s"

    kinds = sorted({kind for load in loads for kind in load.writes})
    return {
        "pods created by the operator": each(lambda load: f"{load.pods / load.created:.0f}/s"),
        "the same pods by a bare client": each(lambda load: f"{load.pods / load.bare:.0f}/s"),
        "jobs from apply to all pods created": each(lambda load: f"{load.jobs / load.created:.1f}/s"),
        "jobs from apply to Complete": each(lambda load: f"{load.jobs / load.completed:.1f}/s"),
        **{
            f"writes of {kind} a job": each(lambda load, kind=kind: f"{load.writes.get(kind, 0) / load.jobs:.2f}")  # type: ignore[misc]
            for kind in kinds
        },
        "a reconcile, 50th / 90th / 99th percentile": each(lambda load: triple(load.reconcile)),
        "wait in the queue, 50th / 90th / 99th percentile": each(lambda load: triple(load.wait)),
        "operator's CPU time a job": each(lambda load: f"{1000 * load.cpu / load.jobs:.0f} ms"),
        "operator's memory": each(lambda load: f"{load.memory_mib:.0f} MiB"),
    }


async def scale(sizes: Sequence[int], foreign: int) -> None:
    """Start and memory with so many finished jobs, and with the most of them beside so many pods of others."""
    starts: list[Start] = []
    async with cluster() as (plane, client):
        where = await namespace(client, "many")
        starts.append(await _start(plane, "nothing", 0))
        await client.create(JOBS, where, job("job-00000", 2, 1, mode="Recommend"))
        async with Operator(plane, **_UNLIMITED):
            while not await _complete(client, where):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        original = await client.get(JOBS, where, "job-00000")
        for jobs in sizes:
            await multiply(plane, client, JOBS, original, jobs)
            starts.append(await _start(plane, f"{jobs} finished jobs", jobs))
        other = {"metadata": {"name": "other-00000"}, "spec": {"containers": [{"name": "main", "image": "other"}]}}
        await multiply(plane, client, PODS, await client.create(PODS, where, other), foreign)
        starts.append(await _start(plane, f"{jobs} finished jobs, {foreign} pods of others", jobs))
    columns = ["ready after", "its CPU time", "the server's", "quiet after", "memory", "at most"]
    _table("start with", columns, {start.with_what: _cells(start) for start in starts})
    *lines, last = starts
    others = f"{foreign} pods of others too"
    draw(
        _IMAGES / "operator-scale.png",
        Panel(
            "memory, MiB",
            {
                "once quiet": [(start.jobs, start.mib) for start in lines],
                "at most": [(start.jobs, start.peak_mib) for start in lines],
            },
            {others: (last.jobs, last.peak_mib)},
            goal=300,
            jobs="finished jobs",
        ),
        Panel(
            "seconds from start to ready",
            {
                "until ready": [(start.jobs, start.ready) for start in lines],
                "CPU time": [(start.jobs, start.cpu) for start in lines],
            },
            {others: (last.jobs, last.ready)},
            goal=30,
            jobs="finished jobs",
        ),
    )


async def _start(plane: LocalControlPlane, what: str, jobs: int) -> Start:
    server = psutil.Process(plane.pids["kube-apiserver"])
    tries = []
    for _ in range(_STARTS):
        before = cpu_seconds(server)
        async with Operator(plane) as operator:
            tries.append((operator.start_seconds, operator.cpu_seconds, cpu_seconds(server) - before))
            if len(tries) == _STARTS:
                quiet = await operator.quiet()
                mib, peak = operator.memory_mib, operator.peak_mib
    print(f"{what}: ready after {', '.join(f'{each[0]:.1f}' for each in tries)} s", file=sys.stderr, flush=True)
    return Start(what, jobs, *min(tries), quiet, mib, peak)


def _cells(start: Start) -> list[str]:
    times = [f"{seconds:.1f} s" for seconds in (start.ready, start.cpu, start.server_cpu, start.quiet)]
    return [*times, f"{start.mib:.0f} MiB", f"{start.peak_mib:.0f} MiB"]


def _table(title: str, columns: Sequence[str], rows: dict[str, list[str]]) -> None:
    print(f"| {title} | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["throughput", "scale"])
    parser.add_argument("--jobs", type=int, nargs="+", help="default: 25 50 100, and 1000 3000 10000")
    parser.add_argument("--foreign", type=int, default=50_000, help="pods of others")
    args = parser.parse_args()
    if args.what == "throughput":
        asyncio.run(throughput(args.jobs or (25, 50, 100)))
    else:
        asyncio.run(scale(args.jobs or (1000, 3000, 10_000), args.foreign))


if __name__ == "__main__":
    main()
