"""What explains a failure on a cluster, written into a folder: events, objects, pods' logs."""

import json
from pathlib import Path
from typing import Any

from muster_dev.api_server import LocalControlPlane
from muster_dev.cluster import OWN_CONTEXTS, Cluster, CommandError

_KINDS = ("trainingjobs.muster.dev", "pods", "services", "deployments", "podgroups", "leases")
_LOG_LINES = 5000


def collect(cluster: Cluster, folder: Path, *, namespace: str | None = None) -> None:
    """Keep what the cluster tells. On a cluster not made here, only of `namespace` and of the operator.

    Never raises: a cluster that is gone is itself part of the explanation, and is written down as such.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _namespaces(cluster, namespace):
        _write(cluster, folder / f"{name}.events.txt", "get", "events", "-n", name, "--sort-by=.lastTimestamp")
        _write(cluster, folder / f"{name}.pods.txt", "get", "pods", "-n", name, "-o", "wide")
        for kind in _KINDS:
            _write(cluster, folder / f"{name}.{kind.split('.')[0]}.yaml", "get", kind, "-n", name, "-o", "yaml")
        for pod in _items(cluster, "pods", "-n", name):
            _pod_logs(cluster, folder, name, pod)
    _write(cluster, folder / "nodes.txt", "describe", "nodes")
    if isinstance(cluster, LocalControlPlane):
        for log in cluster.folder.glob("*.log"):
            lines = log.read_text(errors="replace").splitlines(keepends=True)[-_LOG_LINES:]
            (folder / log.name).write_text("".join(lines))


def _namespaces(cluster: Cluster, namespace: str | None) -> list[str]:
    operators = [
        pod["metadata"]["namespace"] for pod in _items(cluster, "pods", "-A", "-l", "app.kubernetes.io/name=muster")
    ]
    if namespace is None and cluster.context in OWN_CONTEXTS:
        operators += [each["metadata"]["name"] for each in _items(cluster, "namespaces")]
    return list(dict.fromkeys([*([namespace] if namespace else []), *operators]))


def _pod_logs(cluster: Cluster, folder: Path, namespace: str, pod: dict[str, Any]) -> None:
    name = pod["metadata"]["name"]
    status = pod.get("status", {})
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        target = ["-n", namespace, name, "-c", container["name"], f"--tail={_LOG_LINES}"]
        path = folder / f"{namespace}.{name}.{container['name']}"
        _write(cluster, path.with_name(path.name + ".log"), "logs", *target)
        if container.get("restartCount"):
            _write(cluster, path.with_name(path.name + ".previous.log"), "logs", "--previous", *target)


def _items(cluster: Cluster, *args: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", *args, "-o", "json", timeout_s=30))["items"]
    except CommandError:
        return []
    return found


def _write(cluster: Cluster, path: Path, *args: str) -> None:
    try:
        text = cluster.kubectl(*args, timeout_s=30)
    except CommandError as error:
        if "doesn't have a resource type" in str(error):
            return
        text = f"{error}\n"
    if text.strip() and "items: []" not in text:
        path.write_text(text)
