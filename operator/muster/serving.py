"""What the operator answers over HTTP: its metrics, and to the kubelet whether it is alive and ready."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

Check = Callable[[], Awaitable[str]]
"""Returns what is wrong, empty where nothing is."""


@contextlib.asynccontextmanager
async def serving(metrics_port: int, health_port: int, alive: Check, ready: Check) -> AsyncIterator[None]:
    """Serve /metrics on one port, /healthz and /readyz on the other, as long as the block runs; port 0: not served."""
    async with contextlib.AsyncExitStack() as stack:
        if metrics_port:
            await stack.enter_async_context(_site(metrics_port, {"/metrics": _metrics}))
        if health_port:
            await stack.enter_async_context(_site(health_port, {"/healthz": _answer(alive), "/readyz": _answer(ready)}))
        yield


@contextlib.asynccontextmanager
async def _site(port: int, routes: dict[str, Callable[[web.Request], Awaitable[web.Response]]]) -> AsyncIterator[None]:
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, None, port).start()  # None: every address, IPv6 too
        yield
    finally:
        await runner.cleanup()


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _answer(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        problem = await check()
        return web.Response(status=503 if problem else 200, text=(problem or "ok") + "\n")

    return answer
