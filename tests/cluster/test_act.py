import asyncio
from datetime import UTC, datetime

import pytest
from muster.api.status import TrainingJobStatus
from muster.cluster.act import Actor
from muster.cluster.cache import Cache
from muster.cluster.client import Client
from muster.cluster.throttle import TokenBucket
from muster.jobs.model import Job, Progress, ReadProgress

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize("there", [True, False], ids=["on-a-node-that-does-not-answer", "gone"])
async def test_a_log_that_cannot_be_read_tells_of_no_progress_and_stops_nothing(api_server, namespace, there):
    container = {"name": "train", "image": "none"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    pod["spec"]["nodeName"] = "nowhere"
    if there:
        await asyncio.to_thread(api_server.apply, pod, namespace=namespace)
    client = await Client.connect(TokenBucket(1, 1), str(api_server.kubeconfig), api_server.context)
    job = Job(namespace, "job", "uid", 1, NOW, None, TrainingJobStatus())
    try:
        brought = await Actor(client, Cache(lambda _: None)).perform(job, ReadProgress("p", "pod-uid"), NOW)
    finally:
        await client.close()
    assert brought == Progress("pod-uid", "", NOW)
