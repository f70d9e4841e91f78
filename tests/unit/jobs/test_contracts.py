"""What each framework finds in its environment."""

import json

import pytest
from model.world import World, report, spec, template
from muster.api.job import Framework
from muster.api.labels import LONGEST_JOB_NAME
from muster.api.status import ConditionType as Is
from muster.api.status import ConvolutionPlan
from muster.jobs import contracts, members, pods
from muster.jobs.members import Cluster, Member
from muster.jobs.model import Role
from muster.jobs.settings import Settings, cluster_address

W, S = Role.WORKER, Role.SERVER
ALL_REDUCE = Cluster(workers=("w0:1", "w1:1", "w2:1"), gpus_per_worker=1)
FULL = Cluster(
    workers=("w0:1", "w1:1"),
    servers=("s0:1", "s1:1"),
    chief="c0:1",
    evaluator="e0:1",
    scheduler="m0:1",
    gpus_per_worker=4,
)
SERVERS = Cluster(workers=("w0:1", "w1:1"), servers=("s0:1", "s1:1"), scheduler="m0:1", gpus_per_worker=1)
ALONE = Cluster(workers=("localhost:2222",))


def env(framework: str, role: Role, index: int, cluster: Cluster) -> dict[str, str]:
    found = contracts.environment(Framework(framework), Member(role, index), cluster, 2, None)
    return {name: value for name, value in found.items() if not name.startswith("MUSTER_")}


def tf(role: Role, index: int, cluster: Cluster) -> dict[str, object]:
    return json.loads(env("TensorFlow", role, index, cluster)["TF_CONFIG"])


def test_every_pod_has_musters_own_variables() -> None:
    assert contracts.environment(Framework.GENERIC, Member(S, 1), SERVERS, 2, None) == {
        "MUSTER_ROLE": "server",
        "MUSTER_INDEX": "1",
        "MUSTER_WORKERS": "2",
        "MUSTER_SERVERS": "2",
        "MUSTER_WORKER_HOSTS": "w0:1,w1:1",
        "MUSTER_SERVER_HOSTS": "s0:1,s1:1",
        "MUSTER_ATTEMPT": "2",
    }


PYTORCH = [
    ("one GPU a worker", ALL_REDUCE, 2, {"WORLD_SIZE": "3", "RANK": "2", "PET_NNODES": "3", "PET_NPROC_PER_NODE": "1"}),
    ("four GPUs a worker", FULL, 1, {"WORLD_SIZE": "8", "RANK": "4", "PET_NODE_RANK": "1", "PET_NPROC_PER_NODE": "4"}),
    ("on CPUs", Cluster(workers=("w0:1", "w1:1")), 1, {"WORLD_SIZE": "2", "RANK": "1", "PET_NPROC_PER_NODE": "1"}),
    ("profiled alone", ALONE, 0, {"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "2222"}),
]


@pytest.mark.parametrize(
    ("cluster", "index", "holds"), [case[1:] for case in PYTORCH], ids=[case[0] for case in PYTORCH]
)
def test_pytorch_counts_processes_and_meets_at_worker_0(cluster: Cluster, index: int, holds: dict[str, str]) -> None:
    found = env("PyTorch", W, index, cluster)
    assert found.items() >= holds.items()
    assert f"{found['MASTER_ADDR']}:{found['MASTER_PORT']}" == cluster.workers[0]
    assert (found["PET_MASTER_ADDR"], found["PET_MASTER_PORT"]) == (found["MASTER_ADDR"], found["MASTER_PORT"])


def test_a_pytorch_server_is_outside_of_the_process_group() -> None:
    assert env("PyTorch", S, 0, SERVERS) == {"MASTER_ADDR": "w0", "MASTER_PORT": "1"}


def test_tensorflow_places_each_member_in_one_cluster() -> None:
    cluster = {"chief": ["c0:1"], "worker": ["w0:1", "w1:1"], "ps": ["s0:1", "s1:1"]}
    assert tf(W, 1, FULL) == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    assert tf(S, 0, FULL) == {"cluster": cluster, "task": {"type": "ps", "index": 0}}
    assert tf(Role.CHIEF, 0, FULL) == {"cluster": cluster, "task": {"type": "chief", "index": 0}}


@pytest.mark.scenario("B1")
def test_b1_the_evaluator_is_in_nobodys_cluster_but_its_own() -> None:
    for role in (W, S, Role.CHIEF):
        assert "evaluator" not in tf(role, 0, FULL)["cluster"]  # type: ignore[operator]
    assert tf(Role.EVALUATOR, 0, FULL)["task"] == {"type": "evaluator", "index": 0}
    assert tf(Role.EVALUATOR, 0, FULL)["cluster"]["evaluator"] == ["e0:1"]  # type: ignore[index]


def test_tensorflow_alone_has_no_config_and_servers_fail_fast() -> None:
    assert env("TensorFlow", W, 0, ALONE) == {}
    assert (
        env("TensorFlow", W, 0, FULL)["GRPC_FAIL_FAST"]
        == env("TensorFlow", S, 0, FULL)["GRPC_FAIL_FAST"]
        == "use_caller"
    )
    assert "GRPC_FAIL_FAST" not in env("TensorFlow", Role.CHIEF, 0, FULL)


DMLC = {"DMLC_PS_ROOT_URI": "m0", "DMLC_PS_ROOT_PORT": "1", "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "2"}
MXNET = DMLC | {"MXNET_KVSTORE_BIGARRAY_BOUND": "1000000"}
PSLITE = [
    ("MXNet", Role.SCHEDULER, SERVERS, MXNET | {"DMLC_ROLE": "scheduler"}),
    ("MXNet", S, SERVERS, MXNET | {"DMLC_ROLE": "server"}),
    ("MXNet", W, SERVERS, MXNET | {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": "1"}),
    ("MXNet", W, ALONE, {}),
    ("BytePS", Role.SCHEDULER, SERVERS, DMLC | {"DMLC_ROLE": "scheduler"}),
    ("BytePS", S, FULL, DMLC | {"DMLC_ROLE": "server"}),
    (
        "BytePS",
        W,
        SERVERS,
        DMLC | {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": "1", "BYTEPS_LOCAL_SIZE": "1", "BYTEPS_LOCAL_RANK": "0"},
    ),
    ("BytePS", W, FULL, DMLC | {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": "1", "BYTEPS_LOCAL_SIZE": "4"}),
    ("BytePS", W, ALONE, {}),
]


@pytest.mark.parametrize(("framework", "role", "cluster", "expected"), PSLITE)
def test_ps_lite_meets_at_one_scheduler(framework: str, role: Role, cluster: Cluster, expected: dict[str, str]) -> None:
    index = 1 if role == W and cluster is not ALONE else 0
    assert env(framework, role, index, cluster) == expected


def test_paddle_servers_find_themselves_in_the_list() -> None:
    found = env("Paddle", S, 1, SERVERS)
    assert found["TRAINING_ROLE"] == "PSERVER"
    assert f"{found['POD_IP']}:{found['PADDLE_PORT']}" in found["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")


def test_paddle_trainers_know_their_number_and_place() -> None:
    assert env("Paddle", W, 1, SERVERS) == {
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ENDPOINTS": "w0:1,w1:1",
        "PADDLE_CURRENT_ENDPOINT": "w1:1",
        "PADDLE_PSERVERS_IP_PORT_LIST": "s0:1,s1:1",
    }


# On the pods.


@pytest.mark.scenario("B3")
@pytest.mark.parametrize("framework", list(Framework))
def test_b3_the_counts_are_equal_on_every_live_pod_and_are_those_of_the_pods(framework: Framework) -> None:
    world = World(spec=spec(3, 2, framework=framework)).running()
    names = [name for name in world.pods if name != "job-profiler"]
    workers, servers = (sorted(name for name in names if role in name) for role in ("worker", "server"))
    assert world.status.plan is not None
    for name in names:
        found = world.env(name)
        assert (found["MUSTER_WORKERS"], found["MUSTER_SERVERS"]) == ("3", "2")
        assert found["MUSTER_WORKER_HOSTS"] == ",".join(f"{pod}.job.team.svc:2222" for pod in workers)
        assert found["MUSTER_SERVER_HOSTS"] == ",".join(f"{pod}.job.team.svc:2222" for pod in servers)
        assert found["MUSTER_MINIBATCH"] == str(world.status.plan.mini_batch.value)


def test_the_scheduler_is_made_by_muster_and_has_no_gpu() -> None:
    world = World(spec=spec(2, None, framework="MXNet")).running()
    assert "job-scheduler-0" in world.pods
    assert "nvidia.com/gpu" not in json.dumps(world.bodies["job-scheduler-0"])
    assert world.env("job-scheduler-0")["DMLC_ROLE"] == "scheduler"


@pytest.mark.scenario("B5")
def test_b5_pods_without_gpus_see_none() -> None:
    world = World(spec=spec(2, 1)).running()
    assert world.env("job-server-0")["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in world.env("job-worker-0")


@pytest.mark.scenario("A8")
def test_a8_the_workspace_limit_reaches_the_workers() -> None:
    world = World(spec=spec(2, 1, framework="PyTorch"), profile=report())
    world.settle()
    world.exit("job-profiler")
    world.reconcile()
    decision = world.reconcile(dies_after=1)
    assert decision.status.plan is not None
    limited = decision.status.plan.model_copy(
        update={"convolution": ConvolutionPlan(workspace_limit_bytes=64 * 2**20, saved_percent=10)}
    )
    world.status = world.status.model_copy(update={"plan": limited})
    world.settle()
    found = world.env("job-worker-0")
    assert (found["CUDNN_CONV_WSCAP_DBG"], found["MUSTER_CONVOLUTION_WORKSPACE_BYTES"]) == ("64", "67108864")
    assert "CUDNN_CONV_WSCAP_DBG" not in world.env("job-server-0")


def test_what_the_user_sets_wins_but_for_musters_own_facts() -> None:
    own = template()
    own["spec"]["containers"][0]["env"] = [
        {"name": "MASTER_PORT", "value": "29500"},
        {"name": "MUSTER_WORKERS", "value": "99"},
        {"name": "BATCH", "value": "$(MUSTER_MINIBATCH)"},
    ]
    world = World(spec=spec(2, None, framework="PyTorch", worker={"template": own, "replicas": 2})).running()
    entries = next(iter(world.bodies["job-worker-0"]["spec"]["containers"]))["env"]
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names))
    assert names.index("MUSTER_MINIBATCH") < names.index("BATCH")
    found = world.env("job-worker-0")
    assert (found["MASTER_PORT"], found["MUSTER_WORKERS"]) == ("29500", "2")


# What Linux can start.

LONGEST = Settings(address=lambda _, job, pod: cluster_address("n" * 63, job, pod))
MOST = 512


@pytest.mark.scenario("C10")
@pytest.mark.parametrize("framework", [each for each in Framework if each != Framework.TENSORFLOW])
def test_at_the_bounds_of_the_crd_every_variable_fits_into_a_processs_environment(framework: Framework) -> None:
    job, plan = "j" * LONGEST_JOB_NAME, World(spec=spec(2, 2)).profiled().status.plan
    assert plan is not None
    most = {"value": MOST}
    plan = plan.model_copy(
        update={"workers": plan.workers.model_copy(update=most), "servers": plan.servers.model_copy(update=most)}
    )
    wanted = spec(MOST, MOST, framework=framework)
    observed = World(spec=wanted, name=job).observe()
    cluster = members.cluster(observed.job, wanted, plan, LONGEST)
    for role in (W, S):
        body = pods.pod(observed.job, wanted, plan, 1, Member(role, MOST - 1), cluster)
        assert len(body["metadata"]["name"]) <= 63
        longest = max(len(f"{each['name']}={each['value']}") for each in body["spec"]["containers"][0]["env"])
        assert 90_000 < longest < 131_072


@pytest.mark.parametrize(("count", "state"), [(100, "Starting"), (MOST, "Failed")])
def test_a_tf_config_that_is_too_long_for_a_process_is_refused_before_any_pod(count: int, state: str) -> None:
    wanted = spec(count, count, framework="TensorFlow")
    world = World(spec=wanted, name="j" * LONGEST_JOB_NAME, settings=LONGEST).profiled()
    assert world.status.state == state
    if state == "Failed":
        assert world.says(Is.FAILED) == ("True", "InvalidSpec")
        said = world.condition(Is.FAILED).message
        assert "the variable TF_CONFIG" in said
        assert "use fewer replicas, or shorter names of job and namespace" in said
        assert {name for name, _ in world.created} == {f"{world.name}-profiler"}


@pytest.mark.parametrize("field", ["env", "args"])
def test_a_text_of_the_users_that_is_too_long_for_a_process_is_refused_before_the_profile(field: str) -> None:
    own, text = template(), "é" * 70_000  # 140,000 bytes, though the CRD counts characters
    own["spec"]["containers"][0][field] = [{"name": "DATA", "value": text}] if field == "env" else [text]
    world = World(spec=spec(2, None, worker={"template": own, "replicas": 2}))
    world.settle()
    assert world.says(Is.FAILED) == ("True", "InvalidSpec")
    assert "put it into a file" in world.condition(Is.FAILED).message
    assert world.created == []
