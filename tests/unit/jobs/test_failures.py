"""What each end of a pod means, and what follows from it for the job."""

import pytest
from model.world import START, World, spec, template
from muster.api.inventory import Inventory, Node
from muster.api.status import ConditionType as Is
from muster.jobs import failures
from muster.jobs.model import Pod, Refusal, Role, Termination


def pod(**fields: object) -> Pod:
    known = {"name": "job-worker-1", "uid": "u", "owner_uid": "job-uid", "role": Role.WORKER, "index": 1, "attempt": 1}
    return Pod(**(known | {"phase": "Failed", "created": START} | fields))  # type: ignore[arg-type]


def ended(code: int, reason: str = "Error", message: str = "", **fields: object) -> dict[str, object]:
    return {"termination": Termination(code, reason, message)} | fields


COUNTED = [
    # The user's own exit codes.
    ("its own error", ended(1, message="Traceback: KeyError"), "Exited", "KeyError"),
    ("no such command", ended(127), "Exited", "not found in the image"),
    ("a bus error", ended(135), "Exited", "/dev/shm"),
    ("a kill from outside", ended(137), "Exited", "SIGKILL"),
    ("a segmentation fault", ended(139), "Exited", "SIGSEGV"),
    ("its template's deadline", ended(137) | {"reason": "DeadlineExceeded"}, "Exited", "activeDeadline"),
    # Out of memory, of which kind, and what to do.
    ("its memory limit", ended(137, "OOMKilled"), "OutOfMemory", "limits.memory"),
    ("the GPU's memory", ended(1, message="torch.OutOfMemoryError: CUDA"), "DeviceOutOfMemory", "miniBatch"),
    # Its own limit of storage, for which the node says the same as for its own lack of it.
    ("its storage limit", {"reason": "Evicted", "message": "usage exceeds the limit"}, "OutOfStorage", "limit"),
    # Without a word of the training container.
    ("a failed init container", {"message": "init container x ended with exit code 3"}, "PodFailed", "code 3"),
    ("nothing known", {}, "PodFailed", "no reason given"),
]
DISRUPTIONS = [
    ("the node's memory", {"reason": "Evicted", "message": "low on resource: memory"}, "request as much memory"),
    ("the node's storage", {"reason": "Evicted", "message": "low on ephemeral-storage"}, "evicted"),
    ("preemption", {"disruption": "PreemptionByScheduler"}, "higher priority"),
    ("a taint", {"disruption": "DeletionByTaintManager"}, "taint"),
    ("a drain", {"disruption": "EvictionByEvictionAPI"}, "drained"),
    ("a collected node", {"disruption": "DeletionByPodGC"}, "with its node"),
    ("a lost node", {"reason": "NodeLost"}, "lost"),
    ("a node's shutdown", {"reason": "Terminated", "message": "node shutdown"}, "shutdown"),
    ("a broken device", {"reason": "UnexpectedAdmissionError"}, "device"),
    ("a race for GPUs", {"reason": "OutOfnvidia.com/gpu"}, "no nvidia.com/gpu"),
    ("a topology that does not fit", {"reason": "TopologyAffinityError"}, "aligned"),
    ("an unknown disruption", {"disruption": "SomethingNew"}, "SomethingNew"),
    ("an exit that it explains", ended(143, disruption="PreemptionByScheduler"), "preempted"),
]
PERMANENT = [
    ("a missing program", ended(128, "StartError", "exec: no such file"), "CannotStart", "no such file"),
    ("another runtime's word for it", ended(128, "ContainerCannotRun"), "CannotStart", "cannot run"),
]
ENDS = [
    *((*end[:2], "Counted", *end[2:]) for end in COUNTED),
    *((*end[:2], "Disruption", "Disrupted", *end[2:]) for end in DISRUPTIONS),
    *((*end[:2], "Permanent", *end[2:]) for end in PERMANENT),
]


@pytest.mark.parametrize(
    ("fields", "verdict", "reason", "says"), [end[1:] for end in ENDS], ids=[end[0] for end in ENDS]
)
def test_the_meaning_of_an_end(fields: dict[str, object], verdict: str, reason: str, says: str) -> None:
    found = failures.failure(pod(**fields))
    assert (found.verdict, found.reason) == (verdict, reason)
    assert says in found.message
    assert "job-worker-1" in found.message


@pytest.mark.parametrize(
    ("fields", "done", "failed"),
    [
        ({"phase": "Running"}, False, False),
        ({"phase": "Succeeded"}, True, False),
        ({"phase": "Failed"}, False, True),
        ({"phase": "Unknown"}, False, False),
        ({"phase": "Running", "termination": Termination(0)}, True, False),
        ({"phase": "Running", "termination": Termination(1)}, False, True),
        ({"phase": "Failed", "termination": Termination(0)}, True, False),
    ],
)
def test_the_training_container_says_whether_a_pod_is_done(fields: dict[str, object], done: bool, failed: bool) -> None:
    assert (failures.done(pod(**fields)), failures.failed(pod(**fields))) == (done, failed)


# What follows.


@pytest.mark.scenario("C4")
@pytest.mark.parametrize("fields", [end[1] for end in DISRUPTIONS], ids=[end[0] for end in DISRUPTIONS])
def test_c4_eviction_preemption_and_node_loss_do_not_count(fields: dict[str, object]) -> None:
    world = World(spec=spec(2, None, runPolicy={"backoffLimit": 0})).running()
    world.change("job-worker-1", phase="Failed", ready=False, **fields)
    world.settle()
    assert (world.status.restarts, world.status.disruptions, world.status.attempt) == (0, 1, 2)
    assert world.says(Is.PODS_READY) == ("False", "Disrupted")
    world.tick(600)
    world.settle()
    assert {pod.attempt for pod in world.pods.values() if pod.role == Role.WORKER} == {2}


@pytest.mark.scenario("C4")
def test_c4_a_pod_that_somebody_deletes_restarts_the_job_without_counting() -> None:
    world = World(spec=spec(2, 1)).running()
    world.vanish("job-server-0")
    world.settle()
    assert world.says(Is.PODS_READY) == ("False", "PodLost")
    assert (world.status.restarts, world.status.disruptions, world.status.attempt) == (0, 1, 2)


def test_a_disruption_among_crashes_explains_them_and_does_not_count() -> None:
    world = World(spec=spec(3, None)).running()
    world.exit("job-worker-0", 1)
    world.change("job-worker-1", phase="Failed", disruption="EvictionByEvictionAPI")
    world.exit("job-worker-2", 1)
    world.settle()
    assert (world.status.restarts, world.status.disruptions) == (0, 1)
    assert "and 2 more" in world.condition(Is.PODS_READY).message


def test_a_pod_that_goes_before_all_are_made_is_made_again_in_the_same_attempt() -> None:
    world = ready_for_pods()
    world.reconcile(dies_after=3)  # The status, the service and one pod.
    assert set(world.pods) == {"job-profiler", "job-worker-0"}
    world.vanish("job-worker-0")
    world.settle()
    assert (world.status.attempt, world.status.disruptions) == (1, 0)
    assert set(world.pods) == {"job-profiler", "job-worker-0", "job-worker-1"}


def test_a_worker_of_a_tensorflow_job_is_replaced_alone_and_counted_once() -> None:
    world = World(spec=spec(3, 1, framework="TensorFlow")).running()
    world.exit("job-worker-1", 1)
    world.reconcile()
    world.reconcile(dies_after=0)
    world.tick()
    world.settle()
    assert (world.status.restarts, world.status.attempt) == (1, 1)
    assert "job-worker-1" not in world.pods
    world.tick(10)
    world.settle()
    assert {name for name, pod in world.pods.items() if pod.ready} == {"job-worker-0", "job-worker-2", "job-server-0"}
    assert world.pods["job-worker-1"].phase == "Pending"
    assert len(world.status.replaced_pods) == 1


@pytest.mark.scenario("B4")
def test_b4_a_lost_server_of_a_tensorflow_job_restarts_all_of_it() -> None:
    world = World(spec=spec(2, 2, framework="TensorFlow")).running()
    world.exit("job-server-1", 1)
    world.settle()
    assert world.status.attempt == 2


@pytest.mark.scenario("C12")
@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"])
def test_c12_a_bad_image_is_told_at_once_and_fails_the_job_when_a_start_takes_too_long(reason: str) -> None:
    world = World(spec=spec(2, None)).profiled()
    world.change("job-worker-0", waiting_reason=reason, waiting_message="not found", node="node-1", started=world.now)
    decision = world.settle()
    assert world.says(Is.PODS_READY) == ("False", "ImageUnavailable")
    assert "not found" in world.condition(Is.PODS_READY).message
    assert decision.requeue_after == world.settings.start_timeout
    world.tick(601)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "CannotStart")
    world.tick()
    assert set(world.pods) == {"job-profiler"}


def test_c12_a_pod_that_waited_for_a_node_first_has_its_whole_time_to_start() -> None:
    world = World(spec=spec(2, None)).profiled()
    world.tick(10_000)
    world.change("job-worker-0", waiting_reason="ErrImagePull", node="node-1", started=world.now)
    world.settle()
    assert world.says(Is.FAILED)[0] == "False"


def test_c12_a_missing_config_map_is_a_configuration_error() -> None:
    world = World(spec=spec(2, None)).profiled()
    world.change("job-worker-0", waiting_reason="CreateContainerConfigError", waiting_message='configmap "x" not found')
    world.settle()
    assert world.says(Is.PODS_READY) == ("False", "ConfigurationError")


def test_unschedulable_says_what_is_missing_and_waits() -> None:
    world = World(spec=spec(2, None)).profiled()
    message = "0/3 nodes are available: 1 node(s) had untolerated taint, 2 Insufficient nvidia.com/gpu."
    for name in ("job-worker-0", "job-worker-1"):
        world.change(name, unschedulable=message)
    world.tick(100_000)
    world.settle()
    assert world.says(Is.PODS_READY) == ("False", "Unschedulable")
    assert message in world.condition(Is.PODS_READY).message
    assert "and 1 more" in world.condition(Is.PODS_READY).message
    assert world.says(Is.FAILED)[0] == "False"


# Refusals.


def ready_for_pods() -> World:
    """A job whose report is read, with the next pass about to make its pods."""
    world = World(spec=spec(2, None))
    world.settle()
    world.exit("job-profiler")
    world.reconcile()
    return world


QUOTA = (
    'pods "job-worker-1" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: 4, limited: 4'
)


REFUSALS = [
    (QUOTA, "Forbidden", "QuotaExceeded"),
    ('admission webhook "x" denied the request: no', "Forbidden", "Refused"),
    ('User "system:serviceaccount:muster:muster" cannot create resource "pods"', "Forbidden", "NotPermitted"),
    ("pod job-worker-1 exists already and belongs to somebody else", "AlreadyExists", "NameTaken"),
]


@pytest.mark.scenario("C13")
@pytest.mark.parametrize(("message", "given", "reason"), REFUSALS)
def test_c13_a_refusal_is_a_condition_with_its_text(message: str, given: str, reason: str) -> None:
    world = ready_for_pods()
    world.refusals = (Refusal("create pod job-worker-1", message, permanent=False, reason=given, at=world.now),)
    world.reconcile()
    assert world.says(Is.PODS_READY) == ("False", reason)
    assert message in world.condition(Is.PODS_READY).message


@pytest.mark.scenario("C13")
def test_c13_a_quota_refusal_while_the_pods_are_made_is_a_condition_and_waits() -> None:
    world = ready_for_pods()
    world.refusals = (Refusal("create pod job-worker-1", QUOTA, permanent=False, reason="Forbidden", at=world.now),)
    decision = world.reconcile()
    assert world.says(Is.PODS_READY) == ("False", "QuotaExceeded")
    assert QUOTA in world.condition(Is.PODS_READY).message
    assert decision.requeue_after == world.settings.refusal_retry
    assert not any(name.startswith("job-worker") for name in world.pods)
    world.tick(30)
    world.reconcile()
    assert "job-worker-1" in world.pods
    world.refusals = ()
    world.run()
    world.settle()
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")


@pytest.mark.scenario("C13")
def test_c13_a_rejection_as_invalid_is_permanent() -> None:
    world = ready_for_pods()
    message = 'Pod "job-worker-0" is invalid: spec.containers[0].image: Required value'
    world.refusals = (Refusal("create pod job-worker-0", message, permanent=True, reason="Invalid", at=world.now),)
    world.settle()
    assert world.says(Is.FAILED) == ("True", "Rejected")
    assert message in world.condition(Is.FAILED).message


def test_a_refusal_that_concerns_nothing_needed_any_more_holds_nothing_up() -> None:
    world = World(spec=spec(2, None))
    world.refusals = (Refusal("create pod job-worker-7", QUOTA, permanent=False, reason="Forbidden", at=START),)
    world.running()
    assert world.says(Is.PODS_READY) == ("True", "PodsReady")


def test_a_report_that_cannot_be_kept_does_not_hold_up_the_job() -> None:
    world = ready_for_pods()
    world.refusals = (Refusal("create config map job-profile", "exceeded quota: x", permanent=False, at=world.now),)
    decision = world.reconcile()
    assert "job-worker-0" in world.pods
    assert "job-profile" not in world.config_maps
    assert decision.requeue_after is not None


# What the cluster has.


@pytest.mark.scenario("A10")
def test_a10_a_plan_larger_than_the_cluster_says_so_and_makes_no_pods() -> None:
    nodes = (Node("a", 2, 1000, 1), Node("b", 2, 1000, 1))
    world = World(spec=spec(64, None), inventory=Inventory(nodes))
    world.profiled()
    assert world.says(Is.SIZED) == ("False", "InsufficientResources")
    assert "needs 64 GPUs, the cluster has 4" in world.condition(Is.SIZED).message
    assert set(world.pods) == {"job-profiler"}
    assert world.reconcile().requeue_after == world.settings.resize_retry
    world.inventory = Inventory(tuple(Node(str(n), 8, 1000, 1) for n in range(8)))
    world.tick(300)
    world.settle()
    assert len(world.pods) == 65


@pytest.mark.scenario("A10")
def test_a10_a_quota_bounds_like_a_cluster() -> None:
    world = World(spec=spec(4, None), inventory=Inventory((Node("a", 8, 1000, 1),), gpu_quota=2)).profiled()
    assert "the namespace's quota leaves 2" in world.condition(Is.SIZED).message


def test_a_cluster_that_has_shrunk_is_waited_for_before_the_next_attempt() -> None:
    world = World(spec=spec(4, None), inventory=Inventory((Node("a", 2, 1000, 1), Node("b", 2, 1000, 1)))).running()
    world.inventory = Inventory((Node("a", 2, 1000, 1),))
    for name in ("job-worker-2", "job-worker-3"):
        world.change(name, phase="Failed", disruption="DeletionByTaintManager")
    world.settle()
    world.tick(60)
    world.settle()
    assert world.says(Is.PODS_READY) == ("False", "InsufficientResources")
    assert world.condition(Is.PODS_READY).message == "needs 4 GPUs, the cluster has 2"
    assert set(world.pods) == {"job-profiler"}


def test_a_profiling_pod_that_no_node_can_hold_is_not_made() -> None:
    worker = {"template": template(gpus=8)}
    world = World(spec=spec(2, None, worker=worker), inventory=Inventory((Node("a", 4, 1000, 1),)))
    world.settle()
    assert world.pods == {}
    assert world.says(Is.PROFILED) == ("False", "InsufficientResources")
    assert "8 GPUs on one node, the largest node has 4" in world.condition(Is.PROFILED).message
