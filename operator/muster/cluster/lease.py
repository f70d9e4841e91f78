"""Leader election on a coordination.k8s.io Lease, for whoever runs two replicas: only the holder acts.

Own, because that of the client library is broken in 37.0.2. As in client-go, no two clocks are compared: a holder is
gone when its lease has not changed for its duration by the observer's own clock.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime

from muster import metrics
from muster.cluster.client import LEASES, Client, Object
from muster.cluster.errors import ApiError, NotFound

_log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another replica may act now: this one must stop at once."""


class Lease:
    """One replica's hold on a lease, renewed six times within its duration, and given up at two thirds of it."""

    def __init__(self, client: Client, namespace: str, name: str, identity: str, seconds: float) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._seconds = seconds
        self._held: Object | None = None
        self._seen: tuple[str, float] = ("", 0.0)  # the last version seen, and when it was first seen

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        while not await self._try():  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(self._seconds / 6)
        metrics.LEADER.set(1)
        _log.info("holding lease %s/%s as %s", self._namespace, self._name, self._identity)

    async def keep(self) -> None:
        """Renew for ever; raises LeaseLost when that fails for too long."""
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(self._seconds / 6)
            try:
                async with asyncio.timeout(self._seconds / 3):
                    if await self._try():
                        renewed = time.monotonic()
                        continue
            except TimeoutError:
                pass
            if self._held is None or time.monotonic() - renewed > self._seconds * 2 / 3:
                metrics.LEADER.set(0)
                raise LeaseLost(f"lease {self._namespace}/{self._name} could not be renewed")

    async def release(self) -> None:
        """Let the next replica start at once. Best effort."""
        if self._held is None:
            return
        held, self._held = self._held, None
        held["spec"] |= {"holderIdentity": "", "renewTime": _now(), "leaseDurationSeconds": 1}
        try:
            await self._client.replace(LEASES, self._namespace, held)
        except ApiError as error:
            _log.warning("lease not released: %s", error)

    async def _try(self) -> bool:
        """Create, take or renew the lease; False where another holds it, or the server does not answer."""
        try:
            try:
                lease = await self._client.get(LEASES, self._namespace, self._name)
            except NotFound:
                self._held = await self._client.create(LEASES, self._namespace, self._body())
                return True
            if not self._may_take(lease):
                self._held = None
                return False
            self._held = await self._client.replace(LEASES, self._namespace, self._taken(lease))
        except ApiError as error:  # a Conflict too: another replica was faster; the next try reads who holds it
            _log.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return False
        return True

    def _may_take(self, lease: Object) -> bool:
        spec, version = lease.get("spec") or {}, lease["metadata"]["resourceVersion"]
        if spec.get("holderIdentity") in (None, "", self._identity):
            return True
        if version != self._seen[0]:
            self._seen = (version, time.monotonic())
        return time.monotonic() - self._seen[1] > float(spec.get("leaseDurationSeconds") or self._seconds)

    def _body(self) -> Object:
        metadata = {"name": self._name, "namespace": self._namespace}
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._seconds),
            "acquireTime": _now(),
            "renewTime": _now(),
            "leaseTransitions": 0,
        }
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    def _taken(self, lease: Object) -> Object:
        spec = dict(lease.get("spec") or {})
        if spec.get("holderIdentity") != self._identity:
            spec |= {"acquireTime": _now(), "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        spec |= {"holderIdentity": self._identity, "renewTime": _now(), "leaseDurationSeconds": int(self._seconds)}
        return lease | {"spec": spec}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
