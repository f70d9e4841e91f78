"""The chart's objects on a real API server: accepted, restricted, and with rights that are enough and no more."""

import json
from collections.abc import Iterator

import pytest
from chart.conftest import Render
from muster_dev.cluster import Cluster, CommandError

NAMESPACES = ("muster-system", "team-a", "team-b")


@pytest.fixture(scope="module")
def server(api_server: Cluster) -> Iterator[Cluster]:
    for name in NAMESPACES:
        api_server.kubectl("create", "namespace", name)
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    api_server.kubectl("label", "namespace", "muster-system", restricted)
    yield api_server
    for name in NAMESPACES:
        api_server.delete_namespace(name)


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("replicas=2", "networkPolicy.enabled=true", "podAnnotations.a=b", "imagePullSecrets[0].name=registry"),
        ("namespaces={team-a,team-b}", "serviceAccount.annotations.a=b", "priorityClassName=system-cluster-critical"),
        ("rbac.create=false", "serviceAccount.create=false", "crd.install=false", "nodeSelector.zone=a"),
    ],
    ids=str,
)
def test_the_api_server_takes_every_object_without_a_warning(
    server: Cluster, render: Render, values: tuple[str, ...]
) -> None:
    manifest = "\n---\n".join(map(json.dumps, render(*values)))
    server.kubectl("apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-", stdin=manifest)


def test_the_operators_pod_is_restricted(server: Cluster, render: Render) -> None:
    (deployment,) = [each for each in render() if each["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}, "spec": template["spec"]}

    def create(body: dict[str, object]) -> str:
        return server.kubectl("-n", "muster-system", "create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))

    assert "created" in create(pod)
    pod["spec"] = {**template["spec"], "securityContext": {}}
    with pytest.raises(CommandError, match="violates PodSecurity"):
        create(pod)


ALLOWED = (
    ("delete", "trainingjobs.muster.dev"),
    ("patch", "trainingjobs.muster.dev/status"),
    ("create", "pods"),
    ("get", "pods/log"),
    ("create", "services"),
    ("create", "configmaps"),
    ("watch", "resourcequotas"),
    ("create", "events.events.k8s.io"),
)
FORBIDDEN = (
    ("update", "trainingjobs.muster.dev"),
    ("patch", "trainingjobs.muster.dev"),
    ("patch", "pods"),
    ("create", "pods/exec"),
    ("get", "secrets"),
    ("delete", "configmaps"),
    ("create", "deployments.apps"),
    ("create", "leases.coordination.k8s.io"),
    ("update", "nodes"),
)


def can(server: Cluster, verb: str, resource: str, namespace: str) -> bool:
    who = ("--as", "system:serviceaccount:muster-system:muster")
    kind, _, subresource = resource.partition("/")
    part = ("--subresource", subresource) if subresource else ()
    try:
        server.kubectl("auth", "can-i", verb, kind, *part, "-n", namespace, *who)
    except CommandError:
        return False
    return True


@pytest.mark.parametrize("values", [(), ("namespaces={team-a}",)], ids=["everywhere", "in team-a"])
def test_the_operator_may_do_what_it_does_and_no_more(server: Cluster, render: Render, values: tuple[str, ...]) -> None:
    kinds = ("CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    objects = [each for each in render(*values) if each["kind"] in kinds]
    server.apply(*objects)
    try:
        assert [each for each in ALLOWED if not can(server, *each, "team-a")] == []
        assert [each for each in FORBIDDEN if can(server, *each, "team-a")] == []
        assert can(server, "create", "pods", "team-b") is (not values)
        assert can(server, "watch", "nodes", "team-a") is (not values)
    finally:
        kept = [each for each in objects if each["kind"] != "CustomResourceDefinition"]
        server.kubectl("delete", "-f", "-", stdin="\n---\n".join(map(json.dumps, kept)))
