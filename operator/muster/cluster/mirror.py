"""Lists everything completely: before the first reconcile, every few minutes, and when a watch shows that it had a gap.

A watch that begins, or comes back after a 410, tells what there is, never what vanished before: only a complete listing
finds that out. Two signs call for one: a watch that tells again what it has told, and an object that no watch tells of.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from muster.api import labels
from muster.cluster.cache import Cache
from muster.cluster.client import CONFIG_MAPS, JOBS, NODES, PODS, QUOTAS, SERVICES, Client, Resource
from muster.cluster.errors import ApiError, NotFound, Rejected

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 2.0  # a gap is shown once an object: listen until it has been said, then list once

_RETRY_SECONDS = 2.0
_PATIENCE_SECONDS = 2.0  # an object that is untold twice as long has vanished, or its watch is deaf
_PATIENCE_EACH_SECONDS = 0.01  # for each that is untold: a watch that begins tells of ten thousand in half a minute

LABELLED = (PODS, SERVICES, CONFIG_MAPS)
"""Kinds of which only the objects with the job label are of interest."""


class Mirror:
    """Keeps a cache equal to the cluster, as far as the operator may read it."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        namespaces: tuple[str, ...],
        period_seconds: float,
        *,
        watch_nodes: bool = True,
    ) -> None:
        self._client = client
        self._cache = cache
        self._namespaces: tuple[str | None, ...] = namespaces or (None,)
        self._period = period_seconds
        self._gap = asyncio.Event()
        self.optional: set[Resource] = {NODES, QUOTAS} if watch_nodes else set()
        """Kinds that a plan is better with; those that may not be read are taken out."""

    def gap(self) -> None:
        """A watch lists anew: something may have vanished unseen."""
        self._gap.set()

    async def start(self) -> None:
        """The first listing. Waits for the server; NotFound: the CRD is missing; Rejected: a permission is."""
        for resource in tuple(self.optional):
            try:
                await self._patiently(resource, self._probe)
            except (Rejected, NotFound) as error:
                self.optional.discard(resource)
                _log.warning("plans will not know the cluster's %s: %s", resource.plural, error)
        await self.list_all()

    async def list_all(self) -> None:
        """List every kind, and prune what is gone."""
        for resource in (JOBS, *LABELLED, *self.optional):
            await self._patiently(resource, self._list)

    async def run(self) -> None:
        """List every `period_seconds`, and soon after a sign of a gap, for ever."""
        due = time.monotonic() + self._period
        suspect = self._cache.untold()
        patience = _patience(len(suspect))
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._gap.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
            untold = self._cache.untold()
            stuck, suspect = suspect & untold, untold
            patience = min(2 * patience, self._period) if stuck else _patience(len(untold))
            if not (self._gap.is_set() or stuck or time.monotonic() >= due):
                continue
            if self._gap.is_set() or stuck:
                _log.info("a watch had a gap: listing everything, to find what vanished unseen")
            self._gap.clear()
            try:
                await self.list_all()
                due = time.monotonic() + self._period
            except ApiError as error:  # the CRD, or a permission, was taken away
                _log.error("listing failed: %s", error)
                self._gap.set()

    async def _patiently(self, resource: Resource, step: Callable[[Resource], Awaitable[None]]) -> None:
        """Do a step until the server answers it; what worked is not done again."""
        while True:
            try:
                return await step(resource)
            except (NotFound, Rejected):
                raise
            except ApiError as error:
                _log.warning("%s not listed, trying again: %s", resource.plural, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self, resource: Resource) -> None:
        self._cache.table(resource).begin_listing()
        selector = labels.JOB if resource in LABELLED else ""
        version: int | None = None
        for namespace in self._namespaces if resource.namespaced else (None,):
            pages = self._client.pages(resource, namespace, selector=selector, metadata_only=resource is CONFIG_MAPS)
            async for items, listed in pages:
                for raw in items:
                    self._cache.put(resource, raw)
                version = listed if version is None else min(version, listed)
        self._cache.end_listing(resource, version or 0)
        self._cache.nodes_known |= resource is NODES

    async def _probe(self, resource: Resource) -> None:
        """Whether the kind may be listed."""
        namespace = self._namespaces[0] if resource.namespaced else None
        async for _ in self._client.pages(resource, namespace, limit=1):
            pass


def _patience(untold: int) -> float:
    return _PATIENCE_SECONDS + untold * _PATIENCE_EACH_SECONDS
