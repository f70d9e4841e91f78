"""The real cluster: kind's, named `muster`, with a control plane and two workers that advertise GPUs.

It outlives the process that started it. `up` uses one that is healthy again, restarts nodes that stopped with the
engine, and makes a new one of anything else.
"""

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from muster_dev import cache, engine, images, layers, node_image, tools
from muster_dev.cluster import KIND_CLUSTER, Cluster, CommandError, is_ready
from muster_dev.shell import SetupError, run, say, succeeds

GPUS_PER_WORKER = 4
WORKERS = (f"{KIND_CLUSTER}-worker", f"{KIND_CLUSTER}-worker2")
NODES = (f"{KIND_CLUSTER}-control-plane", *WORKERS)

_HEALTHY_WITHIN_S = 90
_HEARD_WITHIN_S = 25  # kubelets renew every 10 s


def cluster() -> Cluster:
    """The way in, whether the cluster is up or not."""
    return Cluster(cache.root() / "kind" / "kubeconfig", f"kind-{KIND_CLUSTER}")


def up(*, load_images: bool = True) -> Cluster:
    """Bring the cluster up, whatever state it is in, with the project's images of the tree as it is now."""
    with cache.lock("kind"):
        engine.ensure()
        tools.ensure_set("kind")
        image = _node_image()
        if not _revive(image):
            _create(image)
        advertise_gpus()
        if load_images:
            load(images.build_project())
    return cluster()


def down() -> None:
    """Delete the cluster. The images and binaries stay in the cache."""
    with cache.lock("kind"):
        if succeeds("docker", "info"):
            tools.ensure(["kind"])
            _kind("delete", "cluster")
        cache.remove(cluster().kubeconfig)


def healthy() -> bool:
    """Whether the API server answers, says that all three nodes are Ready, and hears from them now.

    After a restart a dead node counts as Ready until its grace period is over, so its lease is looked at too.
    """
    try:
        nodes = cluster().get("nodes", "--request-timeout=5s")["items"]
        leases = cluster().get("leases", "--request-timeout=5s", namespace="kube-node-lease")["items"]
    except CommandError:
        return False
    oldest = datetime.now(UTC) - timedelta(seconds=_HEARD_WITHIN_S)
    heard = {each["metadata"]["name"] for each in leases if datetime.fromisoformat(each["spec"]["renewTime"]) > oldest}
    return {node["metadata"]["name"] for node in nodes if is_ready(node)} & heard == set(NODES)


def advertise_gpus(count: int = GPUS_PER_WORKER) -> None:
    """Give each worker `nvidia.com/gpu` by its status, where it lacks that: a node that restarts may lose it."""
    for name in WORKERS:
        node = cluster().get("node", name)
        if node["status"]["allocatable"].get("nvidia.com/gpu") != str(count):
            patch = json.dumps({"status": {"capacity": {"nvidia.com/gpu": str(count)}}})
            cluster().kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)
    for name in WORKERS:
        allocatable = "--for=jsonpath={.status.allocatable.nvidia\\.com/gpu}=" + str(count)
        cluster().kubectl("wait", f"node/{name}", allocatable, "--timeout=60s")


def load(names: Iterable[str]) -> None:
    """Load images of the engine into the workers that lack them in this content."""
    for name in names:
        identity = engine.image_id(name)
        lacking = [node for node in WORKERS if _identity_on(node, name) != identity]
        if lacking:
            say(f"loading {name}")
            try:
                layers.load(name, lacking)
            except SetupError as error:
                say(f"loading it whole instead: {error}")
                _kind("load", "docker-image", name, "--nodes", ",".join(lacking))


def export_logs(folder: str) -> None:
    """kind's own collection: the nodes' journals, containerd, kubelet and every container's log."""
    _kind("export", "logs", folder)


def _node_image() -> str:
    """kind's own image where its registry answers, else one built here."""
    published = cache.versions().kind_node
    if engine.lacks_sys_resource() or not engine.registry_reached(published):
        return node_image.ensure()
    run("docker", "pull", "-q", published)
    return published


def _revive(image: str) -> bool:
    """Whether the cluster is there, of this node image, and healthy, if need be after its nodes are started again."""
    ours = f"label=io.x-k8s.kind.cluster={KIND_CLUSTER}"
    nodes = run("docker", "ps", "-a", "--filter", ours, "--format", "{{.Names}}").split()
    if set(nodes) != set(NODES) or not cluster().kubeconfig.exists():
        return False
    for node in NODES:
        running, of_image = run("docker", "inspect", "-f", "{{.State.Running}} {{.Image}}", node).split()
        if of_image != engine.image_id(image):
            return False
        if running != "true":
            say(f"starting {node} again")
            if not succeeds("docker", "start", node, timeout_s=60):
                return False
    deadline = time.monotonic() + _HEALTHY_WITHIN_S
    while not healthy():
        if time.monotonic() > deadline:
            say("the cluster that was here does not become healthy: making a new one")
            return False
        time.sleep(1)
    return True


def _create(image: str) -> None:
    _kind("delete", "cluster")
    cache.remove(cluster().kubeconfig)  # kind writes it last: a cluster without one was interrupted
    say("creating the cluster")
    folder = cluster().kubeconfig.parent
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "cluster.json"
    config.write_text(json.dumps(_config(), indent=1))
    log = cache.root() / "logs" / "kind-create.log"
    log.unlink(missing_ok=True)
    try:
        _kind("create", "cluster", "--config", str(config), "--wait", "4m", "--image", image, log=log)
        cluster().kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=120s")
        # Nodes are Ready before the controllers are at work; without this account no pod can be created.
        cluster().kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=120s")
    except (SetupError, CommandError):
        succeeds(tools.path("kind"), "export", "logs", str(cache.root() / "logs" / "kind"), "--name", KIND_CLUSTER)
        _kind("delete", "cluster")
        raise


def _config() -> dict[str, object]:
    config: dict[str, object] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane"}, {"role": "worker"}, {"role": "worker"}],
    }
    if engine.on_cgroup_v1():  # the kubelet refuses it by default since 1.35
        config["kubeadmConfigPatches"] = ["kind: KubeletConfiguration\nfailCgroupV1: false\n"]
    if engine.lacks_sys_resource():  # without it nobody may lower an oom_score_adj, and every sandbox would fail
        config["containerdConfigPatches"] = ['[plugins."io.containerd.grpc.v1.cri"]\nrestrict_oom_score_adj = true\n']
    return config


def _kind(*args: str, log: Path | None = None) -> None:
    run(tools.path("kind"), *args, "--name", KIND_CLUSTER, env={"KUBECONFIG": str(cluster().kubeconfig)}, log=log)


def _identity_on(node: str, image: str) -> str:
    try:
        found = json.loads(run("docker", "exec", node, "crictl", "inspecti", "-o", "json", image))
    except SetupError:
        return ""
    return str(found["status"]["id"])
