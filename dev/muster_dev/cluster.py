"""A cluster as the tests see it, whoever made it; and the guard that keeps them off everybody else's."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster_dev import tools

KIND_CLUSTER = "muster"
LOCAL_CONTEXT = "muster-local"
OWN_CONTEXTS = frozenset({f"kind-{KIND_CLUSTER}", LOCAL_CONTEXT})


class ForeignClusterError(Exception):
    """A context that none of the fixtures made and nobody named on purpose."""


class CommandError(Exception):
    """kubectl or Helm ended with an error; the message is what it printed on stderr."""


def refuse_foreign(context: str, *, named: str | None = None) -> None:
    """Raise ForeignClusterError unless `context` is one that muster_dev makes, or the one `named` on purpose."""
    if context not in OWN_CONTEXTS and context != named:
        raise ForeignClusterError(
            f"context {context!r} is not a cluster that these tools made, so nothing is created or deleted there. "
            f"To run the tests on it on purpose: pytest --kubeconfig PATH --context {context}"
        )


class Cluster:
    """A way into one cluster. Every call names kubeconfig and context: the user's current ones are never used."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        self.kubeconfig = kubeconfig
        self.context = context

    @property
    def runs_controllers(self) -> bool:
        """Whether kube-controller-manager acts on the objects: makes default service accounts, for one."""
        return True

    @property
    def flags(self) -> list[str]:
        """What points kubectl and `muster` at this cluster."""
        return ["--kubeconfig", str(self.kubeconfig), "--context", self.context]

    def command(self, program: str, *args: str | Path) -> list[str]:
        """The argv that runs `kubectl` or `helm` on this cluster."""
        flags = ["--kubeconfig", str(self.kubeconfig), "--kube-context", self.context]
        return [str(tools.path(program)), *(flags if program == "helm" else self.flags), *map(str, args)]

    def kubectl(self, *args: str | Path, stdin: str | None = None, timeout_s: float = 600) -> str:
        """Run kubectl and return its stdout. Raises CommandError with its stderr."""
        return _run(self.command("kubectl", *args), stdin, timeout_s)

    def helm(self, *args: str | Path, timeout_s: float = 600) -> str:
        """Run Helm and return its stdout. Raises CommandError with its stderr."""
        tools.ensure(["helm"])
        return _run(self.command("helm", *args), None, timeout_s)

    def drop_interrupted(self, release: str, namespace: str) -> None:
        """Uninstall a Helm release whose last operation was killed under way: Helm itself refuses to go on with it."""
        releases = json.loads(self.helm("list", "--namespace", namespace, "--pending", "--output", "json"))
        if any(each["name"] == release for each in releases):
            self.helm("uninstall", release, "--namespace", namespace, "--wait")

    def apply(self, *objects: str | Path | Mapping[str, Any], namespace: str | None = None) -> str:
        """`kubectl apply` objects, each a mapping, YAML text, or the path of a file or folder."""
        where = ["-n", namespace] if namespace else []
        said = []
        for each in objects:
            if isinstance(each, Path):
                said.append(self.kubectl("apply", *where, "-f", each))
            else:
                text = each if isinstance(each, str) else json.dumps(each)
                said.append(self.kubectl("apply", *where, "-f", "-", stdin=text))
        return "".join(said)

    def get(self, *args: str, namespace: str | None = None) -> dict[str, Any]:
        """`kubectl get ARGS -o json`, parsed: one object, or a List with its `items`."""
        where = ["-n", namespace] if namespace else []
        found: dict[str, Any] = json.loads(self.kubectl("get", *where, *args, "-o", "json"))
        return found

    def token(self, service_account: str, namespace: str) -> str:
        """A short-lived token of a service account, from the API server's TokenRequest."""
        return self.kubectl("create", "token", service_account, "-n", namespace).strip()

    def as_service_account(self, service_account: str, namespace: str) -> "Cluster":
        """This cluster, entered with a service account's token and so with its RBAC rights only."""
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        user = f"{namespace}:{service_account}"
        config["users"] = [{"name": user, "user": {"token": self.token(service_account, namespace)}}]
        config["contexts"][0]["context"]["user"] = user
        path = self.kubeconfig.with_name(f"{self.kubeconfig.name}.{namespace}.{service_account}")
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return Cluster(path, self.context)

    def create_namespace(self, name: str) -> None:
        """Create the namespace and wait until pods may be created in it: until its default service account is there."""
        self.kubectl("create", "namespace", name)
        if self.runs_controllers:
            self.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=60s")

    def delete_namespace(self, name: str) -> None:
        """Ask for the namespace's deletion and do not wait for it."""
        self.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether a Node's Ready condition is True."""
    conditions = node["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _run(argv: list[str], stdin: str | None, timeout_s: float) -> str:
    shown = " ".join([Path(argv[0]).name, *argv[5:]])
    try:
        done = subprocess.run(argv, input=stdin, text=True, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{shown}: no end after {timeout_s:g} s") from error
    if done.returncode != 0:
        raise CommandError(f"{shown}: {done.stderr.strip()}")
    return done.stdout
