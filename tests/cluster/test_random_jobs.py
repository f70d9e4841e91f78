"""Jobs drawn from the CRD's schema, many of them hostile, on a real API server: what it takes, Muster can live with.

Nothing is stored: every request is a dry run. `RANDOM_JOBS=10000 pytest tests/cluster/test_random_jobs.py` draws more.
"""

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from model.whole_life import whole_life
from muster.api import crd
from muster.cluster.client import JOBS, PODS, Client, Resource
from muster.cluster.errors import Rejected, from_response
from muster.cluster.throttle import TokenBucket
from muster.cluster.views import packed_job
from muster_dev.cluster import Cluster
from support.job_constraints import job
from support.random_jobs import random_job
from tenacity import AsyncRetrying, stop_after_delay, wait_fixed

COUNT, CHUNK = int(os.environ.get("RANDOM_JOBS", "400")), 200
Object = dict[str, Any]


class DryRun:
    """Creates objects in the namespace `default` as `kubectl create --dry-run=server` does."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session, self._server = session, server

    async def create(self, resource: Resource, body: str) -> Object:
        """The object as the server would store it; raises what the operator's client does."""
        url = f"{self._server}{resource.path('default')}?dryRun=All&fieldValidation=Strict"
        async with self._session.post(url, data=body.encode(), headers={"Content-Type": "application/json"}) as answer:
            data = await answer.read()
            said: Object = json.loads(data) if data.startswith(b"{") else {}
            if answer.status >= 400:
                raise from_response(answer.status, said, answer.headers.get("Retry-After"))
            return said


@pytest.fixture
async def server(api_server: Cluster) -> AsyncIterator[DryRun]:
    await asyncio.to_thread(api_server.apply, crd.generate())
    client = await Client.connect(TokenBucket(1, 1), str(api_server.kubeconfig), api_server.context)
    access = await client.access()
    await client.close()
    trust = ssl.create_default_context(cafile=access.ca_path)
    if access.certificate_path:
        trust.load_cert_chain(access.certificate_path, access.key_path)
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust), headers=headers) as session:
        found = DryRun(session, access.server)
        async for attempt in AsyncRetrying(stop=stop_after_delay(30), wait=wait_fixed(0.2)):  # until the CRD is served
            with attempt:
                await found.create(JOBS, json.dumps(job({})))
        yield found


@pytest.mark.scenario("C11")
@pytest.mark.parametrize("first", range(0, COUNT, CHUNK))
async def test_c11_what_the_api_server_takes_is_read_and_comes_to_an_end(server: DryRun, first: int) -> None:
    taken, seeds = 0, range(first, min(first + CHUNK, COUNT))
    for seed in seeds:
        try:
            taken += await _lives(server, random_job(seed))
        except BaseException as error:
            error.add_note(f"random_job({seed})")
            raise
    assert taken > len(seeds) / 5, "the jobs are not random, only wrong"


async def _lives(server: DryRun, raw: Object) -> bool:
    """Whether the server takes the job. If it does, so does Muster; its pods are taken, or refused for good."""
    try:
        stored = await server.create(JOBS, json.dumps(raw))
    except Rejected:
        return False
    read = packed_job(stored).unpack()
    assert read.spec_error is None or "levels deep" in read.spec_error, "the schema can say all but this"
    world = whole_life(read)
    for body in list(world.bodies.values())[:4]:
        body["metadata"].pop("ownerReferences")  # of a job that is not stored
        body["metadata"]["namespace"] = "default"
        with contextlib.suppress(Rejected):
            await server.create(PODS, json.dumps(body))
    return True
