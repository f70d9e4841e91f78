"""Plays the scheduler and kubelets of an API server that has none: pods are bound, run, end by a script, are let go.

There are no containers and so no logs: a profile comes back by the termination message.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muster.api import labels
from muster.cluster.client import PODS, Client, Resource
from muster.cluster.errors import ApiError, Conflict, NotFound
from muster.cluster.views import training_container

Object = dict[str, Any]


@dataclass(frozen=True)
class Exit:
    """How a training container ends."""

    code: int = 0
    message: str = ""


Script = Callable[[Object, list[Object]], Exit | None]
"""Of a running pod and all pods of its job: how it ends now; None while it runs."""


class Kubelet:
    """Looks after the pods with the job label, in every namespace or one."""

    def __init__(self, client: Client, script: Script, namespace: str | None = None) -> None:
        self._client = client
        self.script = script
        self._namespace = namespace
        self.seen: dict[str, Object] = {}
        """Every pod ever seen, by uid."""

    async def run(self, period_seconds: float = 0.05) -> None:
        """Until cancelled."""
        while True:
            with contextlib.suppress(ApiError):
                await self.step()
            await asyncio.sleep(period_seconds)

    async def step(self) -> None:
        """Bring every pod one step further."""
        pods: list[Object] = []
        async for items, _ in self._client.pages(PODS, self._namespace, selector=labels.JOB):
            pods += items
        for pod in pods:
            self.seen.setdefault(pod["metadata"]["uid"], pod)
            siblings = [each for each in pods if _job(each) == _job(pod)]
            with contextlib.suppress(NotFound, Conflict):
                await self._bring_on(pod, siblings)

    async def _bring_on(self, pod: Object, siblings: list[Object]) -> None:
        meta, phase = pod["metadata"], pod["status"].get("phase")
        namespace, name = meta["namespace"], meta["name"]
        if "deletionTimestamp" in meta:
            await self._client.delete(PODS, namespace, name, uid=meta["uid"], grace_seconds=0)
        elif not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": "simulated"}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            binding = Resource(f"/api/v1/namespaces/{namespace}/pods/{name}", "binding", namespaced=False)
            await self._client.create(binding, namespace, body)
        elif phase == "Pending":
            await self._report(pod, "Running", {"running": {"startedAt": _now()}}, ready=True)
        elif phase == "Running" and (end := self.script(pod, siblings)) is not None:
            how = {"exitCode": end.code, "message": end.message, "reason": "Error" if end.code else "Completed"}
            state = {"terminated": how | {"finishedAt": _now()}}
            await self._report(pod, "Failed" if end.code else "Succeeded", state, ready=False)

    async def _report(self, pod: Object, phase: str, state: Object, *, ready: bool) -> None:
        container = {"name": training_container(pod), "image": "x", "imageID": "x", "restartCount": 0}
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(ready)}, {"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [container | {"ready": ready, "state": state}],
        }
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        await self._client.merge(PODS, meta["namespace"], f"{meta['name']}/status", patch)


def role(pod: Object) -> str:
    """worker, server, profiler, ..."""
    return pod["metadata"]["labels"].get(labels.ROLE, "")


def attempt(pod: Object) -> int:
    """From 1."""
    return int(pod["metadata"]["labels"].get(labels.ATTEMPT, 0))


def index(pod: Object) -> int:
    """Within the role."""
    return int(pod["metadata"]["labels"].get(labels.INDEX, 0))


def running(pods: list[Object], which: str) -> int:
    """How many pods of a role run."""
    return sum(role(pod) == which and pod["status"].get("phase") == "Running" for pod in pods)


def _job(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["labels"][labels.JOB]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
