"""What the controller owes a job, whatever else goes on: on a real API server."""

import asyncio
import json
import secrets

import psutil
import pytest
from muster.cluster.client import EVENTS, JOBS, PODS, QUOTAS, SERVICES
from muster.cluster.errors import Rejected
from support.jobs import REPORT
from support.kubelet import Exit, attempt, role
from support.lives import SERVERS, WORKERS, Lives, one_restart, training_job
from support.operators import OperatorProcess

MEMBERS = [f"job-server-{index}" for index in range(SERVERS)] + [f"job-worker-{index}" for index in range(WORKERS)]
ONE_LIFE = sorted([("job-profiler", 1), *((name, attempt) for name in MEMBERS for attempt in (1, 2))])


def unique(name: str) -> str:
    return f"{name}-{secrets.token_hex(3)}"


def runs_well(pod, siblings) -> Exit | None:
    if role(pod) == "profiler":
        return Exit(0, json.dumps(REPORT))
    return Exit() if role(pod) == "worker" else None


def runs_on(pod, siblings) -> Exit | None:
    return Exit(0, json.dumps(REPORT)) if role(pod) == "profiler" else None


@pytest.mark.scenario("D4")
async def test_two_operators_at_once_make_no_pod_twice(lives: Lives):  # D4
    life = await lives(unique("two"), start=False)
    second = OperatorProcess(life.proxy.kubeconfig, life.log.with_name("second.log"), namespaces=[life.namespace])
    for operator in (life.operator, second):
        life.tasks.append(asyncio.create_task(operator.keep_alive()))
    try:
        await life.create(training_job("job"))
        status = await life.until_over()
        assert life.pods_created() == ONE_LIFE
        assert (status["restarts"], status["disruptions"], status["attempt"]) == (1, 0, 2)
    finally:
        second.kill()


@pytest.mark.scenario("D4")
async def test_with_the_lease_the_second_stands_by_and_takes_over(lives: Lives):
    election = {"leader_elect": True, "lease_seconds": 3}
    life = await lives(unique("lease"), start=False, lease_namespace="default", lease_name=unique("lease"), **election)
    settings = life.operator.settings | {"identity": "second"}
    life.operator.settings["identity"] = "first"
    second = OperatorProcess(life.proxy.kubeconfig, life.log.with_name("second.log"))
    second.settings.update(settings)
    try:
        life.operator.start()
        await life.eventually("the first holds the lease", lambda: _says(life.log, "holding lease"))
        second.start()
        await life.create(training_job("job"))
        await life.eventually("a pod is made", lambda: _created(life, 4))
        assert "holding lease" not in second.log.read_text()
        life.operator.kill()
        status = await life.until_over()
        assert "holding lease" in second.log.read_text()
        assert life.pods_created() == ONE_LIFE
        assert status["restarts"] == 1
        assert await second.stop() == 0
    finally:
        second.kill()


async def test_an_operator_that_is_told_to_stop_ends_well_and_lets_the_lease_go(lives: Lives):
    life = await lives(unique("stop"), start=False, leader_elect=True, lease_name=unique("lease"), lease_seconds=3600)
    life.operator.start()
    await life.eventually("it works", lambda: _says(life.log, "watching"))
    assert await life.operator.stop() == 0
    life.operator.start()
    await life.eventually("the next one does not wait an hour", lambda: _says(life.log, "watching", 2))


@pytest.mark.scenario("D7")
async def test_one_poisonous_job_does_not_stop_the_others(lives: Lives):  # D7, C10, C11
    life = await lives(unique("poison"), runs_well)
    bad = training_job("bad")
    bad["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "many"}}
    worse = training_job("worse")
    worse["spec"]["worker"]["template"]["spec"]["volumes"] = [{"name": "x", "hostPath": 7}]
    for job in (bad, worse):
        try:
            await life.create(job)
        except Rejected:
            continue  # refused by the API server itself: as good
    await life.create(training_job("job"))
    await life.until_over("job")
    for job in await life.objects(JOBS):
        assert job["status"]["conditions"], job["metadata"]["name"]


@pytest.mark.scenario("C11", "D7")
@pytest.mark.parametrize("depth", [60, 300, 900, 5000])
async def test_a_job_that_is_nested_too_deep_is_refused_by_a_condition_and_stops_no_other(
    depth: int, lives: Lives, api_server
):
    life = await lives(unique("deep"), runs_well)
    deep = '{"a":' * depth + "{}" + "}" * depth
    body = json.dumps(training_job("bad")).replace('"containers": [', f'"affinity": {deep}, "containers": [', 1)
    path = JOBS.path(life.namespace)
    await asyncio.to_thread(api_server.kubectl, "create", "--raw", path, "-f", "-", stdin=body)
    await life.until("Failed", "bad")
    await life.create(training_job("job"))
    await life.until_over("job")
    failed = next(each for each in (await life.job("bad"))["status"]["conditions"] if each["type"] == "Failed")
    assert failed["reason"] == "InvalidSpec"
    assert "spec.worker.template.spec: a part of it is nested more than 50 levels deep" in failed["message"]
    assert life.operator.starts == 1


@pytest.mark.scenario("C13")
async def test_a_quotas_refusal_is_told_and_the_job_goes_on_when_there_is_room(lives: Lives):  # C13
    life = await lives(unique("quota"), runs_well)
    quota = {
        "metadata": {"name": "few"},
        "spec": {"hard": {"pods": "0"}},
        "status": {"hard": {"pods": "0"}, "used": {"pods": "0"}},
    }
    await life.client.create(QUOTAS, life.namespace, quota)
    await life.client.merge(
        QUOTAS, life.namespace, "few/status", {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    )
    await life.create(training_job("job"))

    async def told() -> bool:
        conditions = (await life.job()).get("status", {}).get("conditions", [])
        return any("exceeded quota" in each["message"] for each in conditions)

    await life.eventually("the quota's own words are in a condition", told)
    asked = len(life.proxy.writes)
    await asyncio.sleep(2)
    assert len(life.proxy.writes) - asked < 12, "a server that refuses is not asked in a loop"
    await life.client.delete(QUOTAS, life.namespace, "few")
    await life.until_over()


async def test_a_pod_of_somebody_else_with_the_same_name_is_left_alone_and_told(lives: Lives):
    life = await lives(unique("foreign"), runs_well, start=False)
    meta = {"name": "job-profiler"}
    spec = {"containers": [{"name": "main", "image": "example.com/other:1"}]}
    foreign = await life.client.create(PODS, life.namespace, {"metadata": meta, "spec": spec})
    life.operator.start()
    await life.create(training_job("job"))

    async def told() -> bool:
        conditions = (await life.job()).get("status", {}).get("conditions", [])
        return any("job-profiler" in each["message"] and "belongs to" in each["message"] for each in conditions)

    await life.eventually("the condition names the pod", told)
    found = await life.client.get(PODS, life.namespace, "job-profiler")
    assert found["metadata"]["uid"] == foreign["metadata"]["uid"]
    await life.delete_pod("job-profiler")
    await life.until_over()


@pytest.mark.scenario("D2")
async def test_thousands_of_foreign_pods_leave_its_memory_as_it_is(lives: Lives):
    life = await lives(unique("crowd"), runs_on)
    await life.create(training_job("job"))
    await life.until("PodsReady")
    operator = psutil.Process(life.operator.pid)
    before = operator.memory_info().rss
    spec = {"containers": [{"name": "main", "image": "example.com/other:1", "args": ["x" * 1000]}]}
    gate = asyncio.Semaphore(32)

    async def create(number: int) -> None:
        async with gate:
            await life.client.create(PODS, life.namespace, {"metadata": {"name": f"other-{number}"}, "spec": spec})

    await asyncio.gather(*map(create, range(3000)))
    await life.create(training_job("later"))
    await life.until("PodsReady", "later")  # so that whatever was told before it has been taken in
    assert operator.memory_info().rss - before < 3 * 2**20
    assert life.operator.starts == 1


@pytest.mark.scenario("D8")
async def test_nothing_is_written_on_the_job_but_its_status(lives: Lives, api_server):  # D8
    life = await lives(unique("clean"), runs_well)
    await asyncio.to_thread(
        api_server.kubectl, "create", "-n", life.namespace, "-f", "-", stdin=json.dumps(training_job("job"))
    )
    await life.until_over()
    meta = (await life.job())["metadata"]
    assert "annotations" not in meta
    assert "finalizers" not in meta
    managers = {(each["manager"], each["operation"], each.get("subresource")) for each in meta["managedFields"]}
    assert ("muster", "Apply", "status") in managers
    assert {each for each in managers if each[0].startswith("muster")} == {("muster", "Apply", "status")}


async def test_a_life_costs_one_write_a_child_and_few_of_the_status(lives: Lives):
    # Changed counts alone are apart: at most a write a second, however long a life takes.
    life = await lives(unique("cost"), runs_well, count_interval_seconds=60)
    await life.create(training_job("job"))
    await life.until_over()
    await life.quiet()
    by_kind = {"status": 0, "pods": 0, "services": 0, "events": 0}
    for call in life.proxy.writes:
        if call.method != "DELETE":
            by_kind[call.path.split("/")[-1]] = by_kind.get(call.path.split("/")[-1], 0) + 1
    print(by_kind)
    assert by_kind["pods"] == 1 + WORKERS + SERVERS
    assert by_kind["services"] == 1
    assert by_kind["status"] <= 6
    quiet = len(life.proxy.writes)
    await life.client.merge(JOBS, life.namespace, "job", {"metadata": {"labels": {"looked-at": "again"}}})
    await asyncio.sleep(2)
    assert len(life.proxy.writes) == quiet, "a finished job costs nothing"


async def test_a_life_is_told_in_events_each_once(lives: Lives):
    life = await lives(unique("events"), one_restart)
    await life.create(training_job("job"))
    await life.until_over()

    async def told() -> bool:
        events = await life.objects(EVENTS)
        reasons = [event["reason"] for event in events if event["regarding"]["kind"] == "TrainingJob"]
        return {"Profiled", "Succeeded"} <= set(reasons)

    await life.eventually("its profile and its end are told", told)
    said = [(event["reason"], event.get("note")) for event in await life.objects(EVENTS)]
    print(said)
    assert len(said) == len(set(said))


async def test_a_job_deleted_under_way_is_let_go(lives: Lives):
    life = await lives(unique("gone"), runs_on)
    await life.create(training_job("job"))
    await life.until("PodsReady")
    await life.client.delete(JOBS, life.namespace, "job")
    await life.quiet()
    writes = len(life.proxy.writes)
    for pod in await life.objects(PODS):  # as the garbage collector does
        await life.delete_pod(pod["metadata"]["name"])
    await asyncio.sleep(2)
    assert len(life.proxy.writes) == writes


async def test_a_job_made_again_under_the_same_name_waits_for_the_old_pods_and_runs(lives: Lives):
    life = await lives(unique("again"), runs_on)
    await life.create(training_job("job"))
    await life.until("PodsReady")
    old = {pod["metadata"]["uid"] for pod in await life.objects(PODS)}
    await life.client.delete(JOBS, life.namespace, "job")
    life.kubelet.script = runs_well
    await life.create(training_job("job"))
    await asyncio.sleep(1)
    for pod in await life.objects(PODS) + await life.objects(SERVICES):  # as the garbage collector does
        resource = PODS if "containers" in pod["spec"] else SERVICES
        await life.client.delete(resource, life.namespace, pod["metadata"]["name"], grace_seconds=0)
    await life.until_over()
    new = [pod for pod in await life.objects(PODS) if attempt(pod)]
    assert new
    assert old.isdisjoint(pod["metadata"]["uid"] for pod in new)


async def _says(log, text: str, times: int = 1) -> bool:
    return log.exists() and log.read_text().count(text) >= times


async def _created(life, count: int) -> bool:
    return len(life.pods_created()) >= count
