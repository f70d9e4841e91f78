import asyncio
import contextlib
import threading

from muster.api import crd, labels
from muster.cluster.cache import Cache, Key
from muster.cluster.client import Client
from muster.cluster.throttle import TokenBucket
from muster.cluster.watch import Watch


async def test_news_come_on_the_thread_of_the_event_loop(api_server, namespace):
    """kopf calls a plain function in another thread, where neither the cache nor the queue may be touched."""
    meta = {"name": "service", "labels": {labels.JOB: "job"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "None"}}
    await asyncio.to_thread(api_server.apply, crd.generate())
    await asyncio.to_thread(api_server.apply, service, namespace=namespace)
    told: dict[Key, threading.Thread] = {}
    cache = Cache(lambda key: told.setdefault(key, threading.current_thread()) and None)
    client = await Client.connect(TokenBucket(1, 1), str(api_server.kubeconfig), api_server.context)
    watch = asyncio.create_task(Watch(client, cache, lambda: None).run((namespace,), ()))
    try:
        async with asyncio.timeout(300):
            while not told:  # noqa: ASYNC110 - news from another thread would wake nobody
                await asyncio.sleep(0.05)
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
        await client.close()
    assert told == {Key(namespace, "job"): threading.current_thread()}
