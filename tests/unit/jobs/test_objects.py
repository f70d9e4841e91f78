"""The objects that Muster makes: pods, the profiling pod, the service, the kept report; and the names of all."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.world import World, spec, template
from muster.api.status import ConditionType as Is
from muster.jobs.model import Pod, Role


def profiler(**worker: Any) -> dict[str, Any]:
    world = World(spec=spec(2, None, worker={"template": template()} | worker))
    world.settle()
    return world.bodies["job-profiler"]


def training(body: dict[str, Any]) -> dict[str, Any]:
    return next(container for container in body["spec"]["containers"] if container["name"] == "train")


def variables(body: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in training(body)["env"]}


# Pods of an attempt.


def test_a_pod_is_named_labelled_owned_and_never_restarted_in_place() -> None:
    body = World(spec=spec(2, 1)).running().bodies["job-worker-1"]
    assert body["metadata"] == {
        "name": "job-worker-1",
        "namespace": "team",
        "labels": {
            "muster.dev/job": "job",
            "muster.dev/role": "worker",
            "muster.dev/index": "1",
            "muster.dev/attempt": "1",
            "app.kubernetes.io/managed-by": "muster",
        },
        "ownerReferences": [
            {
                "apiVersion": "muster.dev/v1alpha1",
                "kind": "TrainingJob",
                "name": "job",
                "uid": "job-uid",
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }
    pod = body["spec"]
    assert (pod["restartPolicy"], pod["hostname"], pod["subdomain"]) == ("Never", "job-worker-1", "job")
    assert pod["automountServiceAccountToken"] is False
    assert training(body)["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert training(body)["ports"] == [{"name": "muster", "containerPort": 2222}]


def test_the_users_pod_is_kept_but_for_what_makes_it_a_member() -> None:
    own = template()
    own["metadata"] = {"labels": {"team": "vision", "muster.dev/role": "chief"}, "annotations": {"note": "kept"}}
    own["spec"] |= {
        "automountServiceAccountToken": True,
        "securityContext": {"runAsUser": 1000},
        "restartPolicy": "Always",
        "tolerations": [{"operator": "Exists"}],
    }
    own["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    own["spec"]["containers"][0]["ports"] = [{"containerPort": 2222}]
    body = World(spec=spec(2, None, worker={"template": own, "replicas": 2})).running().bodies["job-worker-0"]
    assert body["metadata"]["labels"]["team"] == "vision"
    assert body["metadata"]["labels"]["muster.dev/role"] == "worker"
    assert body["metadata"]["annotations"] == {"note": "kept"}
    assert body["spec"]["automountServiceAccountToken"] is True
    assert body["spec"]["securityContext"] == {"runAsUser": 1000}
    assert body["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert body["spec"]["restartPolicy"] == "Never"
    assert {"name": "sidecar", "image": "proxy"} in body["spec"]["containers"]
    assert training(body)["ports"] == [{"containerPort": 2222}]


def test_making_pods_changes_nothing_of_the_spec() -> None:
    wanted = spec(2, 1, framework="MXNet")
    before = json.dumps(wanted.dump(), sort_keys=True)
    World(spec=wanted).running()
    assert json.dumps(wanted.dump(), sort_keys=True) == before


@pytest.mark.scenario("C14")
def test_c14_the_service_is_headless_and_names_pods_that_are_not_ready() -> None:
    world = World().profiled()
    service = world.services["job"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"].items() <= world.bodies["job-worker-0"]["metadata"]["labels"].items()


def test_a_queue_admits_an_attempts_pods_together_and_the_profile_alone() -> None:
    world = World(spec=spec(2, 1), labels=(("kueue.x-k8s.io/queue-name", "gpus"),)).running()
    group, size = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
    first = world.bodies["job-worker-0"]["metadata"]
    assert first["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert first["annotations"][size] == "3"
    assert group not in world.bodies["job-profiler"]["metadata"]["labels"]
    world.exit("job-worker-1", 1)
    world.settle()
    world.tick(60)
    world.settle()
    assert world.bodies["job-worker-0"]["metadata"]["labels"][group] != first["labels"][group]


# The profiling pod.


def test_the_users_command_is_wrapped_and_its_mini_batch_is_left_to_the_profiler() -> None:
    own = template(command=("python", "train.py"))
    own["spec"]["containers"][0] |= {
        "args": ["--batch", "$(MUSTER_MINIBATCH)", "$$(MUSTER_MINIBATCH)", "$(OTHER)"],
        "env": [{"name": "BATCH", "value": "$(MUSTER_MINIBATCH)"}, {"name": "FROM", "valueFrom": {"x": "y"}}],
    }
    container = training(profiler(template=own))
    assert container["command"] == [
        "/bin/sh",
        "/muster/muster_profiler/inject/muster-profile",
        "python",
        "train.py",
        "--batch",
        "$$(MUSTER_MINIBATCH)",
        "$$(MUSTER_MINIBATCH)",
        "$(OTHER)",
    ]
    assert "args" not in container
    assert {"name": "BATCH", "value": "$$(MUSTER_MINIBATCH)"} in container["env"]
    assert {"name": "FROM", "valueFrom": {"x": "y"}} in container["env"]
    assert not any(entry["name"] == "MUSTER_MINIBATCH" for entry in container["env"])
    assert container["terminationMessagePolicy"] == "File"


def test_convolutions_that_the_user_has_off_are_not_measured() -> None:
    world = World(spec=spec(3, 2, convolution={"workspace": "Off"}))
    world.settle()
    assert variables(world.bodies["job-profiler"])["MUSTER_PROFILE_CONVOLUTION_SECONDS"] == "0"
    assert "MUSTER_PROFILE_CONVOLUTION_SECONDS" not in variables(profiler())


def test_the_profiler_lies_in_a_volume_that_a_restricted_init_container_fills() -> None:
    pod = profiler()["spec"]
    init = pod["initContainers"][0]
    assert init["command"] == ["/bin/sh", "-c", "cp -r /muster-profiler/. /muster/"]
    assert init["image"] == "muster-profiler:dev"
    assert init["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    mount = {"name": "muster", "mountPath": "/muster"}
    assert mount in init["volumeMounts"]
    assert mount in pod["containers"][0]["volumeMounts"]
    assert any(volume["name"] == "muster" and "emptyDir" in volume for volume in pod["volumes"])
    assert set(init["resources"]["limits"]) == {"cpu", "memory"}  # A quota may demand them.


@pytest.mark.parametrize(("pods_user", "inits_user"), [(None, 65532), (0, 65532), (1000, None)])
def test_the_init_container_is_never_root_and_otherwise_the_pods_user(
    pods_user: int | None, inits_user: int | None
) -> None:
    own = template()
    own["spec"]["securityContext"] = {} if pods_user is None else {"runAsUser": pods_user}
    init = profiler(template=own)["spec"]["initContainers"][0]["securityContext"]
    assert init.get("runAsUser") == inits_user
    assert init["runAsNonRoot"] is True


def test_the_profiling_pod_is_one_worker_with_its_gpus_its_clock_and_no_token() -> None:
    world = World(spec=spec(4, 2, profile={"activeDeadlineSeconds": 200, "warmupSteps": 3, "steps": 8}))
    world.settle()
    body = world.bodies["job-profiler"]
    assert body["spec"]["activeDeadlineSeconds"] == 200
    assert body["spec"]["automountServiceAccountToken"] is False
    assert training(body)["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    found = variables(body)
    assert (found["MUSTER_WORKERS"], found["MUSTER_SERVERS"], found["MUSTER_ATTEMPT"]) == ("1", "0", "0")
    assert (found["MUSTER_PROFILE_WARMUP_STEPS"], found["MUSTER_PROFILE_STEPS"]) == ("3", "8")
    assert found["MUSTER_PROFILE_DEADLINE_SECONDS"] == "180"


def test_probes_do_not_disturb_a_measurement() -> None:
    own = template()
    own["spec"]["containers"][0] |= {"livenessProbe": {"exec": {"command": ["false"]}}}
    assert "livenessProbe" not in training(profiler(template=own))


@pytest.mark.parametrize(
    ("mini_batch", "command", "expected"),
    [
        ({}, ("python", "train.py", "$(MUSTER_MINIBATCH)"), ""),
        ({"value": 48}, ("python", "train.py", "$(MUSTER_MINIBATCH)"), "48"),
        ({"candidates": [128, 16]}, ("python", "train.py"), "16,128"),
        ({"min": 10, "max": 70}, ("python", "train.py"), "16,32,64"),
    ],
)
def test_the_candidates_are_the_users_or_else_left_to_the_profiler(
    mini_batch: dict[str, Any], command: tuple[str, ...], expected: str
) -> None:
    world = World(spec=spec(2, None, miniBatch=mini_batch, worker={"template": template(command=command)}))
    world.settle()
    assert variables(world.bodies["job-profiler"])["MUSTER_PROFILE_MINIBATCHES"] == expected


# Names, owners, and what is not Muster's.


@pytest.mark.scenario("C10")
@pytest.mark.parametrize("name", ["1job", "a.b", "x" * 63])
def test_c10_a_name_that_no_pod_can_have_is_refused_before_anything_is_made(name: str) -> None:
    world = World(name=name)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "InvalidSpec")
    assert "metadata.name" in world.condition(Is.FAILED).message
    assert world.pods == {}


@pytest.mark.scenario("C2", "C11")
@pytest.mark.parametrize(
    "error", ["spec.worker.replicas: Input should be greater than or equal to 1", "spec.gaol: extra"]
)
def test_c2_c11_a_spec_that_breaks_the_models_is_a_condition_and_no_crash(error: str) -> None:
    world = World(spec=None, spec_error=error)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "InvalidSpec")
    assert world.condition(Is.FAILED).message == error
    assert world.status.completion_time == world.now


def test_a_running_job_whose_spec_becomes_unreadable_goes_on() -> None:
    world = World().running()
    pods = dict(world.pods)
    good, world.spec, world.spec_error, world.generation = world.spec, None, "spec.goal: gone", 2
    world.settle()
    assert world.pods == pods
    assert world.says(Is.FAILED) == ("False", "InvalidSpec")
    world.spec, world.spec_error, world.generation = good, None, 3
    world.exit("job-worker-0")
    world.settle()
    assert world.says(Is.COMPLETE)[0] == "True"


def stranger(name: str, **fields: Any) -> Pod:
    known = {"uid": "x", "owner_uid": None, "role": Role.WORKER, "index": 0, "attempt": 1, "phase": "Running"}
    return Pod(name=name, **(known | {"created": World().now} | fields))


@pytest.mark.parametrize("owner", [None, "the-job-before"])
def test_a_pod_of_somebody_else_is_never_touched_and_its_name_is_told(owner: str | None) -> None:
    world = World(spec=spec(2, None))
    world.pods["job-worker-0"] = stranger("job-worker-0", owner_uid=owner)
    world.settle()
    world.exit("job-profiler")
    world.settle()
    assert world.says(Is.PODS_READY) == ("False", "NameTaken")
    assert "job-worker-0" in world.condition(Is.PODS_READY).message
    assert world.deleted == []
    world.vanish("job-worker-0")
    world.settle()
    assert {"job-worker-0", "job-worker-1"} <= set(world.pods)


def test_a_job_recreated_under_its_name_waits_for_the_old_pods_to_end() -> None:
    world = World(spec=spec(2, None))
    world.pods["job-profiler"] = stranger("job-profiler", owner_uid="before", role=Role.PROFILER, deleting=True)
    world.settle()
    assert world.says(Is.PROFILED) == ("False", "Terminating")
    assert world.created == []
    world.tick()
    world.settle()
    assert world.created == [("job-profiler", 1)]


def test_a_pod_with_the_labels_and_another_name_is_left_alone() -> None:
    world = World(spec=spec(2, None)).running()
    world.pods["debug"] = stranger("debug", owner_uid=world.uid, phase="Failed")
    world.settle()
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")
    assert "debug" not in world.deleted


@pytest.mark.scenario("D4")
def test_d4_pods_of_a_later_attempt_than_the_status_knows_stop_every_decision() -> None:
    world = World(spec=spec(2, None)).running()
    stale = world.status
    world.exit("job-worker-1", 1)
    world.settle()
    world.tick(60)
    world.settle()
    assert world.status.attempt == 2
    current, world.status = world.status, stale
    decision = world.reconcile()
    assert decision.actions == ()
    assert decision.status == stale
    assert decision.requeue_after is not None
    world.status = current
    world.settle()
    assert world.status.restarts == 1


@pytest.mark.scenario("D5")
def test_d5_a_stale_cache_asks_again_for_the_same_names() -> None:
    world = World(spec=spec(2, 1))
    world.settle()
    world.exit("job-profiler")
    world.reconcile()
    before = world.observe()
    first, second = world.reconcile(), None
    made = dict(world.pods)
    from muster.jobs import decide

    second = decide(before, world.now)
    for action in second.actions:
        world.act(action)
    assert first.actions == second.actions
    assert world.pods == made


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
OPEN_OF_POD = ["volumes", "initContainers", "securityContext", "hostname", "restartPolicy", "tolerations"]
OPEN_OF_CONTAINER = ["volumeMounts", "ports", "securityContext", "livenessProbe", "terminationMessagePolicy"]


@pytest.mark.scenario("C11")
@given(
    of_pod=st.dictionaries(st.sampled_from(OPEN_OF_POD), JSON),
    of_container=st.dictionaries(st.sampled_from(OPEN_OF_CONTAINER), JSON),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_c11_a_template_that_no_pod_could_have_is_a_condition_and_no_crash(
    of_pod: dict[str, Any], of_container: dict[str, Any]
) -> None:
    own = template()
    own["spec"] |= of_pod
    own["spec"]["containers"][0] |= of_container
    world = World(spec=spec(2, 1, worker={"template": own, "replicas": 2}))
    world.settle()
    if "job-profiler" in world.pods:
        world.running()
    assert world.status.state in ("Running", "Failed")
    assert world.status.state == "Running" or world.says(Is.FAILED) == ("True", "InvalidSpec")
