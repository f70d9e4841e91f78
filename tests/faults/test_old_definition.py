"""An operator that is newer than the cluster's definition of TrainingJob, as after an upgrade that forgot crds/."""

import asyncio
import json
import socket

import aiohttp
from muster.api import crd
from muster.cluster.client import EVENTS
from muster_dev.api_server import LocalControlPlane
from support.jobs import REPORT
from support.kubelet import Exit
from support.lives import Lives, training_job

SAYS = "CustomResourceDefinition trainingjobs.muster.dev is older than this operator: apply the files of crds/"


def ends_well(pod, siblings) -> Exit:
    return Exit(0, json.dumps(REPORT))


async def test_a_status_that_an_old_definition_cannot_hold_is_told_and_holds_up_no_other_job(
    own_api_server: LocalControlPlane, tmp_path
):
    old = crd.generate()
    schema = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["status"]["properties"]["plan"]  # what only a job that is profiled has
    await asyncio.to_thread(own_api_server.apply, old)
    lives = Lives(own_api_server, tmp_path)
    await lives.until_served()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    life = await lives("old", ends_well, health_port=port)

    async def ready() -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.status, await answer.text()

    try:
        await life.create(training_job("job"))

        async def told() -> bool:
            notes = [event["note"] for event in await life.objects(EVENTS) if event["reason"] == "OldDefinition"]
            return len(notes) == 1 and SAYS in notes[0] and "it lacks status.plan" in notes[0]

        await life.eventually("an event names the definition and what it lacks", told)
        status, text = await ready()
        assert status == 503
        assert SAYS in text
        assert SAYS in life.log.read_text()
        assert life.pods_created() == [("job-profiler", 1)], "no pod is made of a plan that was not written"

        await life.create(training_job("other", mode="Recommend", runPolicy={"suspend": True}))
        await life.until("Suspended", "other")

        await asyncio.to_thread(own_api_server.apply, crd.generate())
        await life.until_over("job")
        assert (await ready()) == (200, "ok\n")
    finally:
        await lives.end()
