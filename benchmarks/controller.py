"""What the operator costs and bears: `python benchmarks/controller.py throughput|scale`.

On etcd, kube-apiserver, controller manager, scheduler and kwok as plain processes of this machine, on the same cores.
`throughput` holds the operator against a bare client that creates the same pods on the same server as fast as it can.
`scale` measures a start with many finished jobs and many pods of others. Prints Markdown, as in docs/performance.md.
"""

import sys

sys.path.insert(1, sys.path[0] + "/../dev")

import argparse
import asyncio
import contextlib
import copy
import json
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import psutil
from muster.api import crd, labels
from muster.cluster.client import CONFIG_MAPS, JOBS, PODS, Client, Resource
from muster.cluster.errors import ApiError
from muster.cluster.throttle import TokenBucket
from muster_dev.api_server import CONTROL_PLANE, LocalControlPlane, local_control_plane
from prometheus_client.parser import text_string_to_metric_families

_METRICS, _HEALTH = 18080, 18081
_AT_ONCE = 32
_NAMESPACES = Resource("/api/v1", "namespaces", namespaced=False)
_TIME = dict.fromkeys(
    ("medianNanoseconds", "lowerQuartileNanoseconds", "upperQuartileNanoseconds", "intervalLowNanoseconds"), 200_000_000
) | {"intervalHighNanoseconds": 200_000_000, "cycles": 20}
_REPORT = {
    "format": "muster.dev/profile/v1",
    "device": {"kind": "cuda", "name": "benchmark", "memoryBytes": 80_000_000_000},
    "framework": {"name": "torch", "version": "2"},
    "parameters": {"bytes": 40_000_000, "exchangedBytes": 40_000_000},
    "points": [
        {
            "miniBatch": 64,
            "fits": True,
            "computeTime": _TIME,
            "overheadTime": {**_TIME, **dict.fromkeys(list(_TIME)[:5], 4_000_000)},
            "memory": {"peakBytes": 10**9},
        }
    ],
}


def job(name: str, workers: int, servers: int, **spec: Any) -> dict[str, Any]:
    """A job with a profile that was made before."""
    container = {"name": "train", "image": "example.com/train:1", "command": ["train", "$(MUSTER_MINIBATCH)"]}
    template = {"spec": {"containers": [container]}}
    body: dict[str, Any] = {
        "goal": {"efficiencyPercent": 50},
        "profile": {"from": "ConfigMap", "configMapName": "report"},
        "network": {"serverBandwidth": "10Gbit", "workerBandwidth": "10Gbit"},
        "worker": {"replicas": workers, "template": template},
        "server": {"replicas": servers, "template": template},
    }
    meta = {"name": name}
    return {"apiVersion": labels.API_VERSION, "kind": labels.KIND, "metadata": meta, "spec": body | spec}


class Operator:
    """The operator process, and what it tells."""

    def __init__(self, plane: LocalControlPlane, **settings: object) -> None:
        given = {
            "kubeconfig": plane.kubeconfig,
            "metrics_port": _METRICS,
            "health_port": _HEALTH,
            "log_level": "warning",
        }
        self._environment = os.environ | {
            f"MUSTER_{name.upper()}": str(value) for name, value in (given | settings).items()
        }
        self.start_seconds = 0.0

    async def __aenter__(self) -> "Operator":
        begin = time.monotonic()
        command = [sys.executable, "-m", "muster.cli", "operator"]
        self._process = await asyncio.create_subprocess_exec(*command, env=self._environment)
        while not await self._get(f"http://127.0.0.1:{_HEALTH}/readyz"):
            if self._process.returncode is not None:
                sys.exit("the operator ended")
            await asyncio.sleep(0.05)
        self.start_seconds = time.monotonic() - begin
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.terminate()
        await self._process.wait()

    @property
    def memory_mib(self) -> float:
        return float(psutil.Process(self._process.pid).memory_info().rss) / 2**20

    @property
    def cpu_seconds(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    async def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """The samples of one metric."""
        text = await self._get(f"http://127.0.0.1:{_METRICS}/metrics")
        families = text_string_to_metric_families(text)
        return [(each.labels, each.value) for family in families for each in family.samples if each.name == name]

    async def percentile(self, histogram: str, share: float) -> float:
        """The upper bound of the bucket in which that share of the observations lies."""
        buckets: dict[float, float] = {}
        for marks, value in await self.samples(f"{histogram}_bucket"):
            buckets[float(marks["le"])] = buckets.get(float(marks["le"]), 0) + value
        return min((bound for bound, count in buckets.items() if count >= share * buckets[float("inf")]), default=0.0)

    @staticmethod
    async def _get(url: str) -> str:
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return await answer.text() if answer.status == 200 else ""
        except aiohttp.ClientError:
            return ""


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[tuple[LocalControlPlane, Client]]:
    """A control plane with simulated nodes and the CRD, and a client without a limit."""
    with local_control_plane(CONTROL_PLANE) as plane:
        plane.add_nodes(20)
        plane.apply(crd.generate())
        client = await Client.connect(TokenBucket(1e6, 10**6), str(plane.kubeconfig), plane.context)
        try:
            while True:
                with contextlib.suppress(ApiError):
                    await count(client, JOBS, None)
                    break
                await asyncio.sleep(0.1)
            yield plane, client
        finally:
            await client.close()


async def namespace(client: Client, name: str) -> str:
    await client.create(_NAMESPACES, name, {"metadata": {"name": name}})
    await client.create(
        CONFIG_MAPS, name, {"metadata": {"name": "report"}, "data": {"report.json": json.dumps(_REPORT)}}
    )
    return name


async def create_all(client: Client, resource: Resource, where: str, bodies: list[dict[str, Any]]) -> float:
    """Create them as fast as this machine can; returns the seconds."""
    gate, begin = asyncio.Semaphore(_AT_ONCE), time.monotonic()

    async def one(body: dict[str, Any]) -> None:
        async with gate:
            await client.create(resource, where, body)

    for start in range(0, len(bodies), 2000):
        await asyncio.gather(*map(one, bodies[start : start + 2000]))
    return time.monotonic() - begin


async def count(client: Client, resource: Resource, where: str | None, selector: str = "") -> int:
    total = 0
    async for items, _ in client.pages(resource, where, selector=selector, metadata_only=True):
        total += len(items)
    return total


async def throughput(jobs: int, workers: int, servers: int) -> None:
    """Jobs a second to all pods created and to Complete, writes a job, latency."""
    async with cluster() as (plane, client):
        for name in ("operator", "bare"):
            await namespace(client, name)
        pods = jobs * (workers + servers)
        async with Operator(plane, write_rate=10_000, write_burst=10_000, workers=16) as operator:
            begin = time.monotonic()
            await create_all(client, JOBS, "operator", [job(f"job-{i}", workers, servers) for i in range(jobs)])
            while await count(client, PODS, "operator", labels.JOB) < pods:  # noqa: ASYNC110 - a server is polled
                await asyncio.sleep(0.1)
            created = time.monotonic() - begin
            (example,) = [raw async for items, _ in client.pages(PODS, "operator", limit=1) for raw in items]
            while (done := await finish_running(client, "operator")) < jobs:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            completed = time.monotonic() - begin
            writes = await operator.samples("muster_api_requests_total")
            percentiles = [await operator.percentile("muster_reconcile_duration_seconds", p) for p in (0.5, 0.9, 0.99)]
            waits = [await operator.percentile("muster_queue_wait_seconds", p) for p in (0.5, 0.9, 0.99)]
            cpu, memory = operator.cpu_seconds, operator.memory_mib
        bare = await create_all(client, PODS, "bare", [_copy(example, index) for index in range(pods)])
    print(f"| {jobs} jobs of {workers} workers and {servers} servers | |\n|---|---|")
    speed = f"{pods / created:.0f} pods/s, {jobs / created:.1f} jobs/s"
    print(f"| all {pods} pods created by the operator | {created:.1f} s, {speed} |")
    print(f"| the same pods created by a bare client | {bare:.1f} s, {pods / bare:.0f} pods/s |")
    print(f"| all {done} jobs Complete | {completed:.1f} s, {jobs / completed:.1f} jobs/s |")
    for resource, number in sorted(_writes(writes).items()):
        print(f"| writes of {resource} a job | {number / jobs:.2f} |")
    print(f"| reconcile, 50th / 90th / 99th percentile at most | {' / '.join(f'{each:g} s' for each in percentiles)} |")
    print(
        f"| wait in the queue, 50th / 90th / 99th percentile at most | {' / '.join(f'{each:g} s' for each in waits)} |"
    )
    print(f"| operator's CPU time a job, memory | {1000 * cpu / jobs:.0f} ms, {memory:.0f} MiB |")


async def finish_running(client: Client, where: str) -> int:
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
    states = [raw async for items, _ in client.pages(JOBS, where) for raw in items]
    return sum((raw.get("status") or {}).get("state") == "Complete" for raw in states)


async def scale(jobs: int, foreign: int) -> None:
    """Start-up and memory with so many finished jobs, and so many pods of others."""
    async with cluster() as (plane, client):
        where = await namespace(client, "many")
        print("| start with | seconds to ready | MiB | MiB 10 s later |\n|---|---|---|---|")
        await _measure(plane, "nothing")
        await create_all(client, JOBS, where, [job(f"job-{i}", 2, 1, mode="Recommend") for i in range(jobs)])
        async with Operator(plane, write_rate=10_000, write_burst=10_000, workers=16):
            while await _complete(client, where) < jobs:  # noqa: ASYNC110
                await asyncio.sleep(1)
        await _measure(plane, f"{jobs} finished jobs")
        container = {"name": "main", "image": "example.com/other:1"}
        pods = [{"metadata": {"name": f"other-{i}"}, "spec": {"containers": [container]}} for i in range(foreign)]
        await create_all(client, PODS, where, pods)
        await _measure(plane, f"{jobs} finished jobs, {foreign} pods of others")


async def _measure(plane: LocalControlPlane, what: str) -> None:
    async with Operator(plane) as operator:
        first = operator.memory_mib
        await asyncio.sleep(10)
        print(f"| {what} | {operator.start_seconds:.1f} | {first:.0f} | {operator.memory_mib:.0f} |", flush=True)


async def _complete(client: Client, where: str) -> int:
    pages = client.pages(JOBS, where)
    return sum([(raw.get("status") or {}).get("state") == "Complete" async for items, _ in pages for raw in items])


def _copy(pod: dict[str, Any], index: int) -> dict[str, Any]:
    body = copy.deepcopy({"metadata": pod["metadata"], "spec": pod["spec"]})
    meta = body["metadata"]
    body["metadata"] = {"name": f"pod-{index}", "labels": meta["labels"]}
    body["spec"].pop("nodeName", None)
    return body


def _writes(samples: list[tuple[dict[str, str], float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for marks, value in samples:
        if marks["verb"] != "GET":
            name = f"{marks['resource']} ({marks['verb']})"
            found[name] = found.get(name, 0) + value
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["throughput", "scale"])
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--foreign", type=int, default=5000)
    args = parser.parse_args()
    if args.what == "throughput":
        asyncio.run(throughput(args.jobs, args.workers, args.servers))
    else:
        asyncio.run(scale(args.jobs, args.foreign))


if __name__ == "__main__":
    main()
