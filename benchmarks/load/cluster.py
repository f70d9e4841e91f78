"""The cluster of the benchmark: etcd, kube-apiserver and what else is asked for, and many objects quickly."""

import asyncio
import base64
import contextlib
import copy
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
from muster.api import crd, labels
from muster.cluster.client import CONFIG_MAPS, JOBS, Client, Resource
from muster.cluster.errors import ApiError
from muster.cluster.throttle import TokenBucket
from muster_dev.api_server import LocalControlPlane, local_control_plane

_AT_ONCE = 32
_PUTS = 64  # a transaction of etcd: it allows 128, and 1.5 MB
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


def pod_like(pod: dict[str, Any], name: str) -> dict[str, Any]:
    """A pod to create with the spec of one that the operator made."""
    body = copy.deepcopy({"metadata": {"name": name, "labels": pod["metadata"]["labels"]}, "spec": pod["spec"]})
    body["spec"].pop("nodeName", None)
    return body


@contextlib.asynccontextmanager
async def cluster(components: Sequence[str] = (), nodes: int = 0) -> AsyncIterator[tuple[LocalControlPlane, Client]]:
    """One with the CRD, and a client without a limit."""
    with local_control_plane(components) as plane:
        if nodes:
            plane.add_nodes(nodes)
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
    """A new one, with a report for its jobs."""
    await client.create(_NAMESPACES, name, {"metadata": {"name": name}})
    report = {"metadata": {"name": "report"}, "data": {"report.json": json.dumps(_REPORT)}}
    await client.create(CONFIG_MAPS, name, report)
    return name


async def create_all(client: Client, resource: Resource, where: str, bodies: list[dict[str, Any]]) -> float:
    """Create them as fast as this machine can; returns the seconds."""
    gate, begin = asyncio.Semaphore(_AT_ONCE), time.monotonic()

    async def one(body: dict[str, Any]) -> None:
        async with gate:
            await client.create(resource, where, body)

    await asyncio.gather(*map(one, bodies))
    return time.monotonic() - begin


async def count(client: Client, resource: Resource, where: str | None, selector: str = "") -> int:
    """How many there are."""
    pages = client.pages(resource, where, selector=selector, metadata_only=True)
    return sum([len(items) async for items, _ in pages])


async def multiply(
    plane: LocalControlPlane, client: Client, resource: Resource, original: dict[str, Any], total: int
) -> None:
    """Copies of an object in its namespace, until there are `total`: only uids and the digits of the names differ.

    They are put into etcd as the API server has stored the original, JSON or protobuf: in seconds where creating them
    would take minutes. Returns when the API server has seen them.
    """
    name, uid, where = (original["metadata"][each] for each in ("name", "uid", "namespace"))
    stem, width = name.rstrip("0123456789"), len(name) - len(name.rstrip("0123456789"))
    folder = "/".join(filter(None, ["/registry", resource.group_version[0], resource.plural, where]))
    async with aiohttp.ClientSession(plane.etcd) as session:
        (stored,) = (await _etcd(session, "range", {"key": _encoded(f"{folder}/{name}".encode())}))["kvs"]
        value = base64.b64decode(stored["value"])

        def put(number: int) -> dict[str, Any]:
            own = f"{stem}{number:0{width}}"
            body = value.replace(name.encode(), own.encode()).replace(uid.encode(), f"{number:08}{uid[8:]}".encode())
            return {"requestPut": {"key": _encoded(f"{folder}/{own}".encode()), "value": _encoded(body)}}

        known = await count(client, resource, where)
        for start in range(known, total, _PUTS):
            puts = [put(number) for number in range(start, min(start + _PUTS, total))]
            await _etcd(session, "txn", {"success": puts})
    while known < total:
        await asyncio.sleep(0.5)
        with contextlib.suppress(ApiError):  # it is not there yet
            known = await count(client, resource, where)


async def _etcd(session: aiohttp.ClientSession, what: str, body: dict[str, Any]) -> dict[str, Any]:
    async with session.post(f"/v3/kv/{what}", json=body) as answer:
        answer.raise_for_status()
        return await answer.json()  # type: ignore[no-any-return]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
