"""How long a job waits after the server failed it: a server that was away is no reason to stay away."""

import logging
import re
from typing import Any, cast

import pytest
from muster.cluster.cache import Cache, Key
from muster.cluster.client import JOBS, Client
from muster.cluster.errors import Rejected, Transient
from muster.cluster.events import Recorder
from muster.cluster.workqueue import WorkQueue
from muster.controller import Controller, Limits
from support.job_constraints import job

KEY = Key("team", "job")


def controller(failure: Exception) -> Controller:
    """One whose every decision fails so: nothing reaches its client."""

    def decide(*_: Any) -> Any:
        raise failure

    queue: WorkQueue[Key] = WorkQueue()
    cache = Cache(queue.add)
    cache.put(JOBS, job({}, "job") | {"metadata": {"namespace": "team", "name": "job", "uid": "u"}})
    nothing = cast("Client", None)
    return Controller(decide, nothing, cache, queue, Recorder(nothing, "test"), Limits())


@pytest.mark.scenario("D3")
@pytest.mark.parametrize(
    ("failure", "longest"),
    [(Transient("the server is away"), 15), (Rejected("forbidden", status=403), 375)],
)
async def test_d3_after_an_outage_of_any_length_a_job_is_tried_again_within_seconds(
    failure: Exception, longest: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    tried = controller(failure)
    for _ in range(20):
        await tried.reconcile(KEY)
    waits = [float(wait) for wait in re.findall(r"trying again in ([\d.]+) s", caplog.text)]
    assert len(waits) == 20
    assert longest / 2 < max(waits) <= longest
