"""A whole job's life on a real API server, with a proxy between it and the operator."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from muster.cluster.client import JOBS, PODS, SERVICES, Client, Resource
from muster.cluster.errors import ApiError, NotFound
from muster.cluster.throttle import TokenBucket
from support.jobs import REPORT
from support.kubelet import Exit, Kubelet, attempt, index, role, running
from support.operators import OperatorProcess
from support.proxy import Proxy

WORKERS, SERVERS = 3, 2
PATIENCE_SECONDS = 300
"""A wait is over as soon as what it waits for holds; on a busy machine that takes long."""


def training_job(name: str, **spec: Any) -> dict[str, Any]:
    """3 workers, 2 servers, a profile and one restart allowed."""
    container = {"name": "train", "image": "example.com/train:1", "command": ["train", "$(MUSTER_MINIBATCH)"]}
    template = {"spec": {"containers": [container]}}
    body = {
        "goal": {"efficiencyPercent": 80},
        "worker": {"template": template, "replicas": WORKERS},
        "server": {"template": template, "replicas": SERVERS},
        "network": {"serverBandwidth": "10Gbit", "workerBandwidth": "10Gbit"},
        "runPolicy": {"backoffLimit": 1},
    }
    meta = {"name": name}
    return {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": meta, "spec": body | spec}


def one_restart(pod: dict[str, Any], siblings: list[dict[str, Any]]) -> Exit | None:
    """The profile comes back; worker 1 fails once, when all run; in the second attempt every worker ends well."""
    if role(pod) == "profiler":
        return Exit(0, json.dumps(REPORT, separators=(",", ":")))
    if role(pod) != "worker" or running(siblings, "worker") + running(siblings, "server") < WORKERS + SERVERS:
        ended = role(pod) == "worker" and attempt(pod) == 2 and any(_ended(each) for each in siblings)
        return Exit() if ended else None
    if attempt(pod) == 1:
        return Exit(1, "boom") if index(pod) == 1 else None
    return Exit()


def _ended(pod: dict[str, Any]) -> bool:
    return role(pod) == "worker" and pod["status"].get("phase") == "Succeeded"


@dataclass
class Life:
    """One namespace: test and kubelet reach the server directly, the operator through the proxy."""

    namespace: str
    client: Client
    proxy: Proxy
    operator: OperatorProcess
    kubelet: Kubelet
    log: Path
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def create(self, job: dict[str, Any]) -> None:
        await self.client.create(JOBS, self.namespace, job)

    async def job(self, name: str = "job") -> dict[str, Any]:
        return await self.client.get(JOBS, self.namespace, name)

    async def is_true(self, condition: str, name: str = "job") -> bool:
        try:
            status = (await self.job(name)).get("status") or {}
        except NotFound:
            return False
        return any(each["type"] == condition and each["status"] == "True" for each in status.get("conditions") or [])

    async def until(self, condition: str = "Complete", name: str = "job") -> dict[str, Any]:
        """The status, once the condition is true."""

        async def holds() -> bool:
            return await self.is_true(condition, name)

        await self.eventually(f"{name} is {condition}", holds)
        return (await self.job(name))["status"]

    async def until_over(self, name: str = "job") -> dict[str, Any]:
        """The status, once the job is Complete and its service and running pods are gone."""
        status = await self.until("Complete", name)

        async def holds() -> bool:
            pods = await self.objects(PODS)
            alive = [pod for pod in pods if pod["status"].get("phase") in ("Pending", "Running")]
            return not alive and not await self.objects(SERVICES)

        await self.eventually("servers and service are gone", holds)
        return status

    async def eventually(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until it holds. What the operator said is in the error if that takes too long."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not await holds():
            if time.monotonic() > end:
                jobs = [job.get("status") for job in await self.objects(JOBS)]
                said = self.log.read_text()[-6000:] if self.log.exists() else ""
                pytest.fail(f"not within {PATIENCE_SECONDS} s: {what}: {json.dumps(jobs)[:3000]}\n{said}")
            await asyncio.sleep(0.05)

    async def quiet(self) -> None:
        """Wait until the operator has written nothing for two seconds."""
        writes, end = -1, time.monotonic() + PATIENCE_SECONDS
        while writes != len(self.proxy.writes):
            assert time.monotonic() < end, "the operator does not come to rest"
            writes = len(self.proxy.writes)
            await asyncio.sleep(2)

    async def objects(self, resource: Resource) -> list[dict[str, Any]]:
        """All objects of a kind in the namespace."""
        return [raw async for page, _ in self.client.pages(resource, self.namespace) for raw in page]

    async def delete_pod(self, name: str) -> None:
        """As a user who cannot wait."""
        await self.client.delete(PODS, self.namespace, name, grace_seconds=0)

    def pods_created(self) -> list[tuple[str, int]]:
        """Name and attempt of each pod that the server made for the operator; sorted, so that a second one shows."""
        return sorted((pod["metadata"]["name"], attempt(pod)) for pod in self.proxy.created("pods"))

    async def end(self) -> None:
        self.operator.kill()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.operator.kill()


class Lives:
    """Makes lives on one API server."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._lives: list[Life] = []

    async def __call__(self, name: str, script: Any = one_restart, *, start: bool = True, **settings: Any) -> Life:
        folder = self._folder / name
        folder.mkdir()
        proxy = await (await Proxy.to(self._cluster, folder)).__aenter__()
        client = await self.client()
        await client.create(Resource("/api/v1", "namespaces", namespaced=False), name, {"metadata": {"name": name}})
        operator = OperatorProcess(proxy.kubeconfig, folder / "operator.log", namespaces=[name], **settings)
        life = Life(name, client, proxy, operator, Kubelet(client, script, name), folder / "operator.log")
        life.tasks.append(asyncio.create_task(life.kubelet.run()))
        if start:
            life.tasks.append(asyncio.create_task(operator.keep_alive()))
        self._lives.append(life)
        return life

    async def until_served(self) -> None:
        """Wait until the API server serves TrainingJobs, whose CRD was just applied."""
        client = await self.client()
        while True:
            try:
                async for _ in client.pages(JOBS, None, limit=1):
                    pass
                break
            except ApiError:
                await asyncio.sleep(0.1)
        await client.close()

    async def client(self) -> Client:
        """A client of its own, without a limit."""
        return await Client.connect(TokenBucket(1e6, 10**6), str(self._cluster.kubeconfig), self._cluster.context)

    async def end(self) -> None:
        for life in self._lives:
            await self.release(life)
        self._lives.clear()

    async def release(self, life: Life) -> None:
        """End one life early."""
        await life.end()
        await life.proxy.__aexit__()
        await life.client.close()
