import pytest
from muster.cluster.cache import Cache, Key
from muster.cluster.client import JOBS, NODES, PODS, QUOTAS, SERVICES

KEY = Key("team", "resnet")
OWNER = {"kind": "TrainingJob", "name": "resnet", "uid": "job-uid", "controller": True}


def job(version: int = 1, uid: str = "job-uid", **spec) -> dict:
    spec = {
        "goal": {"efficiencyPercent": 80},
        "worker": {"template": {"spec": {"containers": [{"name": "train", "command": ["train"]}]}}},
    } | spec
    meta = {"name": "resnet", "namespace": "team", "uid": uid, "generation": 1, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def pod(index: int = 0, version: int = 1, uid: str | None = None, phase: str = "Pending", **meta) -> dict:
    meta = {
        "name": f"resnet-worker-{index}",
        "namespace": "team",
        "uid": uid or f"pod-{index}",
        "resourceVersion": str(version),
        "labels": {"muster.dev/job": "resnet", "muster.dev/role": "worker", "muster.dev/index": str(index)},
        "ownerReferences": [OWNER],
    } | meta
    return {"metadata": meta, "status": {"phase": phase}}


@pytest.fixture
def news() -> list[Key]:
    return []


@pytest.fixture
def cache(news) -> Cache:
    return Cache(news.append)


def phases(cache: Cache) -> dict[str, str]:
    observed = cache.observe(KEY)
    assert observed is not None
    return {pod.name: pod.phase for pod in observed.pods}


def test_a_job_is_seen_with_its_pods_and_services(cache, news):
    cache.put(PODS, pod(0))
    assert cache.observe(KEY) is None
    cache.put(JOBS, job())
    service = {"metadata": pod()["metadata"] | {"name": "resnet", "uid": "service"}}
    cache.put(SERVICES, service)
    foreign = {"metadata": service["metadata"] | {"name": "other", "uid": "other", "ownerReferences": []}}
    cache.put(SERVICES, foreign)
    observed = cache.observe(KEY)
    assert observed is not None
    assert observed.services == ("resnet",)
    assert phases(cache) == {"resnet-worker-0": "Pending"}
    assert news == [KEY] * 4


def test_older_news_never_undo_newer(cache, news):
    cache.put(JOBS, job())
    cache.put(PODS, pod(version=9, phase="Running"))
    news.clear()
    cache.put(PODS, pod(version=8, phase="Pending"), watched=True)
    assert phases(cache) == {"resnet-worker-0": "Running"}
    assert news == []


def test_a_change_that_no_view_shows_is_no_news(cache, news):
    cache.put(PODS, pod(version=1))
    news.clear()
    cache.put(PODS, pod(version=2))
    assert news == []


def test_a_deleted_pod_does_not_come_back_by_an_older_listing(cache):
    cache.put(JOBS, job())
    cache.put(PODS, pod())
    cache.pods.begin_listing()
    cache.remove(PODS, pod(version=5))
    cache.put(PODS, pod())  # the page that was read before the deletion
    cache.end_listing(PODS, 4)
    assert phases(cache) == {}


def test_a_pod_of_the_same_name_is_another_pod(cache):
    cache.put(JOBS, job())
    cache.put(PODS, pod(version=1, uid="old"))
    cache.put(PODS, pod(version=5, uid="new", phase="Running"))
    cache.remove(PODS, pod(version=4, uid="old"))
    assert phases(cache) == {"resnet-worker-0": "Running"}


def test_what_a_listing_does_not_show_is_pruned_and_told(cache, news):
    cache.put(JOBS, job())
    for index in range(3):
        cache.put(PODS, pod(index))
    news.clear()
    cache.pods.begin_listing()
    cache.put(PODS, pod(1))
    cache.end_listing(PODS, 100)
    assert phases(cache) == {"resnet-worker-1": "Pending"}
    assert news == [KEY]


def test_what_came_while_listing_stays(cache):
    cache.put(JOBS, job())
    cache.pods.begin_listing()
    cache.put(PODS, pod(0, version=50))  # created by ourselves, after the page was read
    cache.end_listing(PODS, 40)
    assert phases(cache) == {"resnet-worker-0": "Pending"}


def test_a_listing_older_than_what_is_known_prunes_nothing_newer(cache):
    cache.put(JOBS, job())
    cache.put(PODS, pod(0, version=50))
    cache.pods.begin_listing()
    cache.end_listing(PODS, 40)
    assert phases(cache) == {"resnet-worker-0": "Pending"}


def test_a_gap_shows_when_a_watch_lists_what_it_knew_or_what_nobody_knew(cache):
    cache.put(PODS, pod(0))  # by the first listing
    assert not cache.pods.is_news(pod(0))
    cache.put(PODS, pod(0), watched=True)  # the watch starts with its own listing
    assert cache.pods.is_news(pod(0))
    assert cache.pods.is_news(pod(1))


def test_a_status_that_the_operator_wrote_is_seen_at_once(cache):
    cache.put(JOBS, job(version=1))
    cache.put(JOBS, job(version=2) | {"status": {"state": "Running"}})
    assert cache.observe(KEY).job.status.state == "Running"


def test_the_inventory_is_unknown_until_nodes_may_be_read(cache, news):
    cache.put(JOBS, job())
    assert cache.observe(KEY).inventory is None
    cache.nodes_known = True
    news.clear()
    cache.put(NODES, node("a", gpus=8))
    cache.put(NODES, node("b", gpus=8, version=2))
    cache.put(NODES, node("b", gpus=8, version=3, unschedulable=True))
    assert [node.name for node in cache.observe(KEY).inventory.nodes] == ["a"]
    assert cache.observe(KEY).inventory.gpus == 8
    cache.put(QUOTAS, quota("q", hard=6, used=3))
    assert cache.observe(KEY).inventory.gpus == 3
    assert news == []


def node(name: str, gpus: int, version: int = 1, **spec) -> dict:
    meta = {"name": name, "uid": name, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec, "status": {"allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "16"}}}


def quota(name: str, hard: int, used: int) -> dict:
    resource = "requests.nvidia.com/gpu"
    meta = {"name": name, "namespace": "team", "uid": name, "resourceVersion": "1"}
    return {"metadata": meta, "status": {"hard": {resource: str(hard)}, "used": {resource: str(used)}}}


def test_what_no_watch_has_told_of_is_known_until_it_is_told_or_gone(cache):
    cache.put(PODS, pod(0))
    cache.put(PODS, pod(1))
    cache.put(PODS, pod(2), watched=True)
    assert {name for _, _, name in cache.untold()} == {"resnet-worker-0", "resnet-worker-1"}
    cache.put(PODS, pod(0), watched=True)
    cache.remove(PODS, pod(1, version=7))
    assert cache.untold() == set()


def test_a_listing_of_one_job_prunes_that_job_alone(cache, news):
    cache.put(JOBS, job())
    cache.put(PODS, pod(0))
    cache.put(PODS, pod(1))
    other = pod(2, labels={"muster.dev/job": "other"})
    cache.put(PODS, other)
    news.clear()
    cache.put_pods(KEY, [pod(1)], 100)
    assert phases(cache) == {"resnet-worker-1": "Pending"}
    assert len(cache.pods) == 2
    assert news == [KEY]


def test_what_the_operator_deleted_itself_is_news_too(cache, news):
    cache.put(JOBS, job())
    cache.put(PODS, pod(0))
    news.clear()
    cache.forget(PODS, KEY, "resnet-worker-0", "pod-0")
    assert phases(cache) == {}
    assert news == [KEY]
