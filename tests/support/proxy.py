"""An honest proxy in front of a real API server: it forwards everything, and spoils only what a test tells it to.

The operator under test reaches the server through it alone, so that every write is seen, counted, and can be lost on
the way there or on the way back.
"""

import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from muster.cluster import nesting
from muster.cluster.client import Access, Client
from muster.cluster.throttle import TokenBucket

_HOP = {
    "host",
    "connection",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "authorization",
}


class Drop(Exception):
    """Close the connection without an answer."""


@dataclass
class Answer:
    """What the proxy says in the server's place."""

    status: int
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.status}
        return json.dumps(status | {"reason": self.reason, "message": f"{self.reason} (by the proxy)"}).encode()


@dataclass
class Call:
    """One request. `number` counts the writes from 1; reads have 0."""

    method: str
    path: str
    query: dict[str, str]
    number: int
    body: dict[str, Any] | None = None
    status: int = 0
    answer: dict[str, Any] | None = None

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def what(self) -> str:
        parts = self.path.split("/")
        return (
            f"{self.method} {'/'.join(parts[parts.index('namespaces') + 2 :] if 'namespaces' in parts else parts[-1:])}"
        )


Hook = Callable[[Call], Awaitable[Answer | None]]


async def _nothing(_: Call) -> None:
    return None


class Proxy:
    """An asynchronous context manager. `before` may answer in the server's place, `after` in place of its answer."""

    def __init__(self, access: Access, folder: Path) -> None:
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self.on_read: Callable[[Call, bytes], object] = lambda _, __: None
        """Told of every answered read that is no watch."""
        self.writes: list[Call] = []
        self.away = False
        """While true, no connection gets an answer."""
        self.kubeconfig = folder / "proxy.kubeconfig"
        self._access = access
        self._watches: set[web.StreamResponse] = set()

    @classmethod
    async def to(cls, cluster: Any, folder: Path) -> "Proxy":
        """In front of a cluster of the fixtures."""
        client = await Client.connect(TokenBucket(1, 1), str(cluster.kubeconfig), cluster.context)
        try:
            return cls(await client.access(), folder)
        finally:
            await client.close()

    async def __aenter__(self) -> "Proxy":
        trust = ssl.create_default_context(cafile=self._access.ca_path)
        if self._access.certificate_path:
            trust.load_cert_chain(self._access.certificate_path, self._access.key_path)
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True, read_bufsize=2**22)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._write_kubeconfig(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_watches()
        await self._runner.cleanup()
        await self._session.close()

    def cut_watches(self) -> int:
        """End every open watch as a broken network does; returns how many there were."""
        cut = list(self._watches)
        for response in cut:
            self._abort(response)
        return len(cut)

    def created(self, plural: str) -> list[dict[str, Any]]:
        """Objects of a kind that were created through the proxy, as the server answered."""
        return [
            call.answer
            for call in self.writes
            if call.method == "POST" and call.status == 201 and call.path.endswith(f"/{plural}") and call.answer
        ]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        write = request.method != "GET"
        call = Call(request.method, request.path, dict(request.query), len(self.writes) + 1 if write else 0)
        if write:
            call.body = json.loads(data) if data else None
            self.writes.append(call)
        try:
            if self.away:
                raise Drop
            if answer := await self.before(call):
                return self._say(call, answer)
            return await self._forward(request, call, data)
        except (Drop, ConnectionError, aiohttp.ClientError):  # the errors: the operator, or the server, has gone
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)

    async def _forward(self, request: web.Request, call: Call, data: bytes) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        if self._access.token:
            headers["Authorization"] = f"Bearer {self._access.token}"
        url = self._access.server + request.raw_path
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            call.method, url, headers=headers, data=data or None, timeout=timeout
        ) as given:
            call.status = given.status
            if call.is_watch and given.status == 200:
                return await self._stream(request, given)
            body = await given.read()
            if call.is_write:
                call.answer = nesting.loads(body)
            elif given.status == 200:
                self.on_read(call, body)
            kept = {name: value for name, value in given.headers.items() if name.lower() not in _HOP}
            if answer := await self.after(call):
                return self._say(call, answer)
            return web.Response(status=given.status, body=body, headers=kept)

    async def _stream(self, request: web.Request, given: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": given.headers["Content-Type"]})
        await response.prepare(request)
        self._watches.add(response)
        try:
            async for chunk in given.content.iter_any():
                await response.write(chunk)
        finally:
            self._watches.discard(response)
        return response

    @staticmethod
    def _say(call: Call, answer: Answer) -> web.Response:
        call.status = call.status or answer.status
        return web.Response(
            status=answer.status, body=answer.content, headers={"Content-Type": "application/json"} | answer.headers
        )

    @staticmethod
    def _abort(response: web.StreamResponse) -> None:
        with contextlib.suppress(AttributeError):
            response._req.transport.abort()  # type: ignore[union-attr]

    def _write_kubeconfig(self, port: int) -> None:
        named = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        }
        self.kubeconfig.write_text(json.dumps(named))
