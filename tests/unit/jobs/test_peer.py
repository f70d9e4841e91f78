"""The peer pod of a profile's network measurement: when there is one, what it is, and that nothing waits for it."""

from typing import Any

import pytest
from model.world import World, spec, template
from muster.api import labels
from muster.api.status import ConditionType as Is
from muster.jobs import Settings
from muster.jobs.model import Refusal

PEER = "job-peer-0"


def measuring(workers: int | None = 3, servers: int | None = 2, **fields: Any) -> World:
    """A job whose profiling pod has its node."""
    world = World(spec=spec(workers, servers, **{"network": {}} | fields))
    world.settle()
    world.run("job-profiler")
    world.settle()
    return world


def env(world: World, name: str) -> dict[str, str]:
    (container,) = world.bodies[name]["spec"]["containers"]
    return {entry["name"]: entry["value"] for entry in container["env"]}


BOTH = {"serverBandwidth": "10Gbit", "workerBandwidth": "10Gbit"}


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ({}, True),
        ({"network": {"serverBandwidth": "10Gbit"}}, True),
        ({"network": BOTH}, False),
        ({"servers": None}, True),
        ({"servers": None, "network": {"workerBandwidth": "10Gbit"}}, False),
        ({"servers": None, "workers": 1}, False),
        ({"workers": 1}, True),
    ],
    ids=["servers", "one given", "both given", "all-reduce", "all-reduce, given", "alone", "one worker and servers"],
)
def test_there_is_a_peer_where_the_plan_needs_a_bandwidth_that_is_not_given(fields: Any, made: bool) -> None:
    world = measuring(**fields)
    assert (PEER in world.pods) == made
    assert (env(world, "job-profiler").get(labels.ENV_PROFILE_PEER) == f"{PEER}.job.team.svc:2222") == made
    assert ("job" in world.services) == made, "its address needs the service"


def test_a_report_that_exists_needs_no_peer() -> None:
    profile = {"from": "ConfigMap", "configMapName": "old"}
    world = World(spec=spec(3, 2, network={}, profile=profile), config_maps={"old": {}})
    world.settle()
    assert world.says(Is.PROFILED) == ("True", "Profiled")
    assert PEER not in [name for name, _ in world.created]


def test_on_one_machine_there_is_no_peer() -> None:
    world = World(spec=spec(3, 2, network={}), settings=Settings(measure_network=False))
    world.settle()
    world.run()
    world.settle()
    assert list(world.pods) == ["job-profiler"]


def test_the_peer_is_a_server_without_gpus_and_volumes_on_another_node() -> None:
    server = template(gpus=2)
    server["spec"] |= {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [{"name": "download", "image": "busybox"}],
        "nodeSelector": {"pool": "cpu"},
    }
    container = server["spec"]["containers"][0]
    container |= {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    container["resources"]["limits"]["cpu"] = "4"
    world = measuring(server={"template": server, "replicas": 2})
    pod = world.bodies[PEER]["spec"]
    (only,) = pod["containers"]
    assert only["resources"] == {"limits": {"cpu": "4"}}
    assert only["command"][-5:] == ["--peer", "--port", "2222", "--seconds", "600"]
    assert [mount["name"] for mount in only["volumeMounts"]] == ["muster"]
    assert [each["name"] for each in pod["initContainers"]] == ["muster-profiler"]
    assert [volume["name"] for volume in pod["volumes"]] == ["muster"]
    assert (pod["nodeSelector"], pod["restartPolicy"]) == ({"pool": "cpu"}, "Never")
    assert pod["automountServiceAccountToken"] is False
    assert pod["terminationGracePeriodSeconds"] == 1
    assert env(world, PEER)["NVIDIA_VISIBLE_DEVICES"] == "void"
    (term,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == {labels.JOB: "job", labels.ROLE: "profiler"}


def test_the_peer_waits_for_the_profiling_pods_node_so_that_it_cannot_take_it() -> None:
    world = World(spec=spec(3, 2, network={}))
    world.settle()
    world.change("job-profiler", unschedulable="0/1 nodes are available")
    world.settle()
    assert PEER not in world.pods


def test_the_peer_is_gone_when_the_profile_is_done() -> None:
    world = measuring()
    world.run()
    world.exit("job-profiler")
    world.settle()
    world.tick()
    world.settle()
    assert world.says(Is.SIZED)[0] == "True"
    assert PEER not in world.pods
    assert [name for name, _ in world.created].count(PEER) == 1


@pytest.mark.parametrize("clean", ["All", "Running", "None"])
def test_the_peer_is_gone_when_the_profile_failed_whatever_the_clean_up_policy(clean: str) -> None:
    world = measuring(runPolicy={"cleanPodPolicy": clean, "backoffLimit": 0})
    world.change("job-profiler", phase="Failed", reason="DeadlineExceeded")
    world.policy(activeDeadlineSeconds=1)
    world.tick(10)
    world.settle()
    world.tick()
    assert world.says(Is.FAILED)[0] == "True"
    assert PEER not in world.pods


def test_the_peer_is_gone_when_the_job_is_suspended() -> None:
    world = measuring()
    world.policy(suspend=True)
    for _ in range(3):
        world.settle()
        world.tick()
    assert world.pods == {}


def test_a_profile_that_is_tried_again_gets_a_peer_of_its_own() -> None:
    world = measuring()
    world.run()
    world.change("job-profiler", phase="Failed", reason="Evicted")
    for _ in range(4):
        world.settle()
        world.tick(30)
    world.run("job-profiler")
    world.settle()
    assert [attempt for name, attempt in world.created if name == PEER] == [1, 2]


def test_a_peer_that_cannot_be_scheduled_is_told_and_holds_up_nothing() -> None:
    world = measuring()
    world.change(PEER, unschedulable="0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules")
    world.settle()
    assert "anti-affinity" in world.condition(Is.PROFILED).message
    assert world.says(Is.PROFILED) == ("False", "Profiling")
    world.exit("job-profiler")
    world.settle()
    assert world.says(Is.SIZED)[0] == "True"


def test_a_peer_that_fails_is_not_made_again_and_holds_up_nothing() -> None:
    world = measuring()
    world.exit(PEER, 1)
    world.settle()
    assert (world.status.restarts, world.says(Is.FAILED)[0]) == (0, "False")
    assert [name for name, _ in world.created].count(PEER) == 1


@pytest.mark.parametrize("permanent", [True, False])
def test_a_peer_that_is_refused_is_told_and_holds_up_nothing(permanent: bool) -> None:
    world = World(spec=spec(3, 2, network={}))
    world.settle()
    world.refusals = (Refusal(f"CreatePod {PEER}", "exceeded quota: pods", permanent),)
    world.run("job-profiler")
    world.settle()
    assert PEER not in world.pods
    assert "exceeded quota" in world.condition(Is.PROFILED).message
    world.exit("job-profiler")
    world.settle()
    assert world.says(Is.SIZED)[0] == "True"
