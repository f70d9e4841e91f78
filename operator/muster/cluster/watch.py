"""The only importer of `kopf`: it watches, and nothing else.

Only `event` and `login` handlers: change handlers, timers and daemons would write to the objects (annotations,
finalizers), and `kopf.index` starts in quadratic time. kopf logs and drops an event handler's errors: it only touches
the cache.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

import kopf

from muster.api import labels
from muster.cluster import nesting
from muster.cluster.cache import WATCHED, Cache
from muster.cluster.client import NODES, QUOTAS, Access, Client, Resource

_PAGE = 100  # objects a page of a watch's first listing
_IDLE_SECONDS = 0.1  # kopf keeps a task for every object that had an event within so long


class _NoDiffBase(kopf.DiffBaseStorage):  # type: ignore[misc]
    """No handler compares bodies, so none is kept: a third of the CPU of an event."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> Any:
        return None

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):  # type: ignore[misc]
    """No handler makes progress over several events."""

    def fetch(self, **_: Any) -> Any:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: Any) -> Any:
        return essence


class _ForEver:
    """Seconds between tries: an API server that is away for long is no reason to end."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.5, 1.0, 2.0)
        while True:
            yield 4.0


class Watch:
    """Feeds a cache from watch streams; `gap` is called when a stream has had to list anew."""

    def __init__(self, client: Client, cache: Cache, gap: Callable[[], None]) -> None:
        self._client = client
        self._cache = cache
        self._gap = gap

    async def run(self, namespaces: tuple[str, ...], optional: Collection[Resource]) -> None:
        """Watch until SIGTERM or SIGINT. Raises when a stream ends in a way that only a new process can mend."""
        nesting.install()
        registry = kopf.OperatorRegistry()
        access = await self._client.access()
        kopf.on.login(registry=registry, id="login")(_login(access))
        for resource in WATCHED:
            if resource in (NODES, QUOTAS) and resource not in optional:
                continue
            group, version = resource.group_version
            kopf.on.event(group, version, resource.plural, registry=registry, id=resource.plural)(
                self._handler(resource)
            )
        await kopf.operator(
            registry=registry,
            settings=_settings(),
            standalone=True,
            # For peering, which is off; without it kopf asks for the user's name, which a bare uid in a pod lacks.
            identity=labels.FIELD_MANAGER,
            namespaces=namespaces,
            clusterwide=not namespaces,
        )

    def _handler(self, resource: Resource) -> Callable[..., Awaitable[None]]:
        table = self._cache.table(resource)

        # A coroutine, though it waits for nothing: kopf calls a plain function in a thread of its own, and neither the
        # cache nor the queue may be touched by two threads.
        async def on_event(type: str | None, event: Any, **_: Any) -> None:
            raw = event["object"]
            if type == "DELETED":
                self._cache.remove(resource, raw)
                return
            if type is None and table.is_news(raw):
                self._gap()
            self._cache.put(resource, raw, watched=True)

        return on_event


def _login(access: Access) -> Callable[..., Any]:
    if access.in_cluster:
        # Reads the token anew each time: it is rotated.
        return kopf.login_with_service_account  # type: ignore[no-any-return]

    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=access.server,
            ca_path=access.ca_path,
            insecure=access.insecure,
            certificate_path=access.certificate_path,
            private_key_path=access.key_path,
            token=access.token,
        )

    return login


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.networking.error_backoffs = _ForEver()
    settings.networking.connect_timeout = 5
    settings.queueing.idle_timeout = _IDLE_SECONDS
    settings.watching.chunk_size = _PAGE
    for plural in ("pods", "services"):
        settings.watching.label_selectors["", "v1", plural] = labels.JOB
    logging.getLogger("kopf.objects").setLevel(logging.ERROR)
    return settings
