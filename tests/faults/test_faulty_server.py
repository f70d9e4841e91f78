"""One fault of the API server, or of the way to it, through a job's whole life: it ends the same, with no pod twice."""

import asyncio
import itertools
import json
import random
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from muster.api import labels
from muster.api.report import Report
from muster.cluster.act import Actor, Reading
from muster.cluster.cache import Cache, Key
from muster.cluster.client import JOBS, Client
from muster.cluster.client import PODS as PODS_KIND
from muster.cluster.errors import Transient
from muster.cluster.throttle import TokenBucket
from muster.jobs.model import ReadReport
from support.jobs import REPORT
from support.kubelet import Exit, role
from support.lives import SERVERS, WORKERS, Life, Lives, training_job
from support.proxy import Answer, Call, Drop

MEMBERS = [f"job-server-{index}" for index in range(SERVERS)] + [f"job-worker-{index}" for index in range(WORKERS)]
PODS = sorted([("job-profiler", 1), *((name, attempt) for name in MEMBERS for attempt in (1, 2))])

EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
GONE = Answer(200, body=json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n")
"""How the API server tells a watch that its place in history is gone."""

Arm = Callable[[Life], None]


def every(
    count: int, spoil: Callable[[Call], Answer | None], *, writes: bool = True
) -> Callable[[Call], Awaitable[Answer | None]]:
    """Spoil every so-many-th write, or every so-many-th request that is no watch."""
    counter = itertools.count(1)

    async def hook(call: Call) -> Answer | None:
        counts = call.is_write if writes else not call.is_watch
        return spoil(call) if counts and next(counter) % count == 0 else None

    return hook


def drop(_: Call) -> Answer | None:
    raise Drop


def before(hook: Callable[[Call], Awaitable[Answer | None]]) -> Arm:
    return lambda life: setattr(life.proxy, "before", hook)


def after(hook: Callable[[Call], Awaitable[Answer | None]]) -> Arm:
    return lambda life: setattr(life.proxy, "after", hook)


def delays() -> Arm:
    chance = random.Random(7)

    async def hook(_: Call) -> None:
        await asyncio.sleep(chance.uniform(0, 0.4))

    return before(hook)


def cut_watches(life: Life) -> None:
    async def cut() -> None:
        while True:
            await asyncio.sleep(0.3)
            life.proxy.cut_watches()

    life.tasks.append(asyncio.create_task(cut()))


def watches_without_history(life: Life) -> None:
    """Every second watch is told that its place in history is gone, and all of them are cut again and again."""
    counter = itertools.count()

    async def hook(call: Call) -> Answer | None:
        return GONE if call.is_watch and next(counter) % 2 else None

    life.proxy.before = hook
    cut_watches(life)


FAULTS: dict[str, Callable[[], Arm]] = {
    "every 5th request is dropped on the way there": lambda: before(every(5, drop, writes=False)),
    "every 4th write takes effect and its answer is dropped": lambda: after(every(4, drop)),
    "every 4th write takes effect and is answered 504": lambda: after(every(4, lambda _: Answer(504, "Timeout"))),
    "every 4th write is answered 409": lambda: before(every(4, lambda _: Answer(409, "Conflict"))),
    "every 4th write is answered 500": lambda: before(every(4, lambda _: Answer(500, "InternalError"))),
    "every 6th request is answered 503": lambda: before(
        every(6, lambda _: Answer(503, "ServiceUnavailable"), writes=False)
    ),
    "every 8th write is answered 429, come back in a second": lambda: before(
        every(8, lambda _: Answer(429, "TooManyRequests", {"Retry-After": "1"}))
    ),
    "every request is late": delays,
    "every watch is cut, again and again": lambda: cut_watches,
    "watches find their place in history gone": lambda: watches_without_history,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_job_with_a_restart_ends_the_same_when(fault, lives: Lives):
    life = await lives(f"fault-{secrets.token_hex(3)}", start=False)
    FAULTS[fault]()(life)
    life.tasks.append(asyncio.create_task(life.operator.keep_alive()))
    await life.create(training_job("job"))
    status = await life.until_over()
    assert status["restarts"] == 1
    assert life.pods_created() == PODS


@pytest.mark.scenario("D3")
async def test_a_server_that_goes_away_for_a_while_is_waited_for(lives: Lives):
    life = await lives(f"away-{secrets.token_hex(3)}")
    await life.create(training_job("job"))
    for pods in (1, 4, 8):
        await life.eventually(f"{pods} pods are made", lambda n=pods: _made(life, n))
        life.proxy.away = True
        life.proxy.cut_watches()
        await asyncio.sleep(5)
        life.proxy.away = False
    status = await life.until_over()
    assert status["restarts"] == 1
    assert life.pods_created() == PODS


@pytest.mark.scenario("D3")
async def test_what_vanished_while_a_watch_was_deaf_is_found_out(lives: Lives):
    """A worker is deleted while no watch is open, and the watches come back without their place in history."""

    def run_on(pod, siblings):
        return Exit(0, json.dumps(REPORT)) if role(pod) == "profiler" else None

    life = await lives(f"gap-{secrets.token_hex(3)}", run_on)
    await life.create(training_job("job"))
    await life.until("PodsReady")
    deaf = True

    async def no_watch(call: Call) -> Answer | None:
        if call.is_watch:
            return Answer(503) if deaf else GONE
        return None

    life.proxy.before = no_watch
    life.proxy.cut_watches()
    await life.delete_pod("job-worker-1")
    deaf = False
    await life.eventually("the lost worker is noticed", lambda: _attempt(life, 2))
    life.proxy.before = life.proxy.after
    status = await life.until("PodsReady")
    assert (status["restarts"], status["disruptions"]) == (0, 1)
    assert len(life.pods_created()) == len(set(life.pods_created()))


@pytest.mark.scenario("D5")
async def test_an_operator_that_starts_from_an_old_answer_makes_nothing_twice(lives: Lives):
    """A new operator's listings are answered from the past, as by an API server that lags behind."""
    life = await lives(f"stale-{secrets.token_hex(3)}")
    old: dict[str, bytes] = {}
    stale_until = 0.0
    loop = asyncio.get_running_loop()

    async def remember_or_repeat(call: Call) -> Answer | None:
        if call.is_write or call.is_watch or "namespaces" not in call.path:
            return None
        if loop.time() < stale_until and call.path in old:
            return Answer(200, body=old[call.path])
        return None

    life.proxy.before = remember_or_repeat
    life.proxy.on_read = lambda call, body: old.setdefault(call.path, body)
    await life.create(training_job("job"))
    for pods in (1, 4, 9):
        await life.eventually(f"{pods} pods are made", lambda n=pods: _made(life, n))
        stale_until = loop.time() + 3
        life.operator.kill()
    status = await life.until_over()
    assert status["restarts"] == 1
    assert life.pods_created() == PODS


async def test_a_look_before_a_restart_does_not_believe_an_answer_from_before_the_job(lives: Lives):
    """The race in which the job is told before its pods are, and the look that is to confirm their loss is stale."""
    life = await lives(f"past-{secrets.token_hex(3)}", start=False)
    version = [listed async for _, listed in life.client.pages(PODS_KIND, life.namespace)][-1]
    past = json.dumps({"kind": "PodList", "metadata": {"resourceVersion": str(version)}, "items": []}).encode()
    await life.create(training_job("job"))
    raw = await life.job()
    cache = Cache(lambda _: None)
    cache.put(JOBS, raw)
    observed = cache.observe(Key(life.namespace, "job"))
    assert observed is not None
    stale = True

    async def replay(call: Call) -> Answer | None:
        return Answer(200, body=past) if stale and call.path.endswith("/pods") else None

    life.proxy.before = replay
    client = await Client.connect(TokenBucket(1e6, 10**6), str(life.proxy.kubeconfig), None)
    try:
        actor = Actor(client, cache)
        with pytest.raises(Transient, match="were answered as of"):
            await actor.look(observed.job)
        stale = False
        assert await actor.look(observed.job) is False
    finally:
        await client.close()


async def test_a_report_is_not_looked_for_in_an_answer_from_before_its_pod_ended(lives: Lives):
    """Such an answer tells of no termination message, and where the log is gone too the profile would seem to fail."""
    life = await lives(f"early-{secrets.token_hex(3)}", start=False)
    await life.create(training_job("job"))
    meta = {"name": "job-profiler", "labels": {labels.JOB: "job", labels.ROLE: "profiler"}}
    spec = {"containers": [{"name": "train", "image": "example.com/train:1"}]}
    past = await life.client.create(PODS_KIND, life.namespace, {"metadata": meta, "spec": spec})
    cache = Cache(lambda _: None)
    cache.put(JOBS, await life.job())
    observed = cache.observe(Key(life.namespace, "job"))
    assert observed is not None

    async def ended() -> bool:
        pod = await life.client.get(PODS_KIND, life.namespace, "job-profiler")
        cache.put(PODS_KIND, pod)
        return pod["status"].get("phase") == "Succeeded"

    await life.eventually("the profile is done", ended)
    stale = True

    async def replay(call: Call) -> Answer | None:
        return Answer(200, body=json.dumps(past).encode()) if stale and call.path.endswith("/job-profiler") else None

    life.proxy.before = replay
    client = await Client.connect(TokenBucket(1e6, 10**6), str(life.proxy.kubeconfig), None)
    try:
        actor, reads = Actor(client, cache), ReadReport(pod="job-profiler")
        with pytest.raises(Transient, match="job-profiler was answered as of"):
            await actor.perform(observed.job, reads, datetime.now(UTC))
        stale = False
        brought = await actor.perform(observed.job, reads, datetime.now(UTC))
    finally:
        await client.close()
    assert isinstance(brought, Reading)
    assert isinstance(brought.report, Report)


async def _made(life: Life, count: int) -> bool:
    return len(life.pods_created()) >= count


async def _attempt(life: Life, number: int) -> bool:
    return (await life.job())["status"].get("attempt") == number
