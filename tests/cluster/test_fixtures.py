"""The clusters that the other tests stand on are what those tests take them for."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from muster_dev import cache
from muster_dev.api_server import LocalControlPlane
from muster_dev.cluster import Cluster, CommandError, ForeignClusterError, refuse_foreign
from muster_dev.layers import chain_ids

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fixtures.example"},
    "spec": {
        "group": "fixtures.example",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}},
                                "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "size is above 0"}],
                            }
                        },
                    }
                },
            }
        ],
    },
}


def wait_until_gone(pid: int) -> None:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":  # dead; its new parent has not asked yet
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} lives on")


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"answer": "42"}}


UNSCHEDULABLE = "--for=condition=PodScheduled=False"
APART: dict[str, Any] = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "peers"}},
}


def sleeping_pod(name: str, script: str = "exec sleep infinity") -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "muster-examples:dev",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def gpu_pod(name: str, gpus: int) -> dict[str, Any]:
    pod = sleeping_pod(name)
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return pod


def scheduling_message(cluster: Cluster, pod: str, namespace: str) -> str:
    conditions = cluster.get("pod", pod, namespace=namespace)["status"]["conditions"]
    return next(each["message"] for each in conditions if each["type"] == "PodScheduled")


class TestForeignClusters:
    @pytest.mark.parametrize("context", ["minikube", "kind-kind", "production", ""])
    def test_a_context_that_nobody_named_is_refused(self, context: str) -> None:
        with pytest.raises(ForeignClusterError, match="not a cluster that these tools made"):
            refuse_foreign(context)

    def test_the_refusal_says_how_to_name_one_on_purpose(self) -> None:
        with pytest.raises(ForeignClusterError, match="pytest --kubeconfig PATH --context production"):
            refuse_foreign("production", named="staging")

    @pytest.mark.parametrize("context", ["kind-muster", "muster-local"])
    def test_the_clusters_made_here_are_accepted(self, context: str) -> None:
        refuse_foreign(context)

    def test_a_cluster_named_on_purpose_is_accepted(self) -> None:
        refuse_foreign("production", named="production")


class TestCache:
    def test_a_build_that_fails_leaves_what_was_there(self, tmp_path: Path) -> None:
        (tmp_path / "tool").write_text("whole")
        with contextlib.suppress(RuntimeError), cache.building(tmp_path / "tool") as part:
            part.write_text("half")
            raise RuntimeError
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("tool", "whole")]

    def test_what_a_killed_build_left_is_cleared_by_the_next(self, tmp_path: Path) -> None:
        (tmp_path / ".tool.part-killed").mkdir()
        (tmp_path / ".tool.part-killed" / "tool").write_text("half")
        with cache.building(tmp_path / "tool") as part:
            part.write_text("whole")
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("tool", "whole")]

    def test_every_binary_of_a_set_has_a_module_and_a_version(self) -> None:
        versions = cache.versions()
        for name in {name for each in versions.sets.values() for name in each}:
            assert versions.tool_of(name).version.startswith("v")

    def test_a_layer_is_known_by_itself_and_those_below(self) -> None:
        # The example of the OCI image specification: ChainID(A|B) = digest of "A B".
        below, above = "sha256:" + "a" * 64, "sha256:" + "b" * 64
        both = "sha256:" + hashlib.sha256(f"{below} {above}".encode()).hexdigest()
        assert chain_ids([below, above]) == [below, both]


class TestApiServer:
    def test_it_keeps_objects(self, api_server: Cluster, namespace: str) -> None:
        api_server.apply(config_map("kept"), namespace=namespace)
        assert api_server.get("configmap", "kept", namespace=namespace)["data"] == {"answer": "42"}

    def test_it_validates_custom_resources_by_their_rules(self, api_server: Cluster, namespace: str) -> None:
        api_server.apply(CRD)
        api_server.kubectl("wait", "--for=condition=Established", "crd/widgets.fixtures.example")
        widget = {"apiVersion": "fixtures.example/v1", "kind": "Widget", "metadata": {"name": "a"}}
        try:
            api_server.apply({**widget, "spec": {"size": 1}}, namespace=namespace)
            with pytest.raises(CommandError, match="size is above 0"):
                api_server.apply({**widget, "spec": {"size": 0}}, namespace=namespace)
        finally:
            api_server.kubectl("delete", "crd", "widgets.fixtures.example")

    def test_a_service_account_may_do_what_its_role_allows_and_nothing_else(
        self, api_server: Cluster, namespace: str
    ) -> None:
        api_server.apply(config_map("readable"), namespace=namespace)
        api_server.kubectl("create", "serviceaccount", "reader", "-n", namespace)
        api_server.kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps", "-n", namespace)
        subject = f"--serviceaccount={namespace}:reader"
        api_server.kubectl("create", "rolebinding", "reader", "--role=reader", subject, "-n", namespace)
        reader = api_server.as_service_account("reader", namespace)
        assert reader.get("configmap", "readable", namespace=namespace)["data"] == {"answer": "42"}
        with pytest.raises(CommandError, match="forbidden"):
            reader.kubectl("delete", "configmap", "readable", "-n", namespace)

    def test_a_restarted_one_still_has_the_objects(self, own_api_server: LocalControlPlane) -> None:
        own_api_server.apply(config_map("kept"), namespace="default")
        own_api_server.stop_api_server()
        with pytest.raises(CommandError, match="refused"):
            own_api_server.get("configmap", "kept", namespace="default")
        own_api_server.start_api_server()
        assert own_api_server.get("configmap", "kept", namespace="default")["data"] == {"answer": "42"}

    def test_its_processes_die_with_a_test_run_that_is_killed(self) -> None:
        script = """
import os, signal
from muster_dev.api_server import local_control_plane
with local_control_plane() as plane:
    print(*plane.pids.values(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
        env = {**os.environ, "PYTHONPATH": str(cache.DEV)}
        done = subprocess.run([sys.executable, "-c", script], env=env, text=True, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        for pid in map(int, done.stdout.split()):
            wait_until_gone(pid)


class TestControlPlane:
    def test_pods_run_on_simulated_nodes(self, control_plane: LocalControlPlane, namespace: str) -> None:
        control_plane.apply(gpu_pod("one", 8), namespace=namespace)
        control_plane.kubectl("wait", "--for=condition=Ready", "pod/one", "-n", namespace, "--timeout=180s")
        assert control_plane.get("pod", "one", namespace=namespace)["spec"]["nodeName"].startswith("simulated-")

    def test_a_pod_that_no_node_has_the_gpus_for_stays_pending(
        self, control_plane: LocalControlPlane, namespace: str
    ) -> None:
        control_plane.apply(gpu_pod("greedy", 9), namespace=namespace)
        control_plane.kubectl("wait", UNSCHEDULABLE, "pod/greedy", "-n", namespace, "--timeout=180s")
        assert "Insufficient nvidia.com/gpu" in scheduling_message(control_plane, "greedy", namespace)

    @pytest.mark.parametrize(("exit_code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
    def test_a_pod_ends_as_its_annotation_says(
        self, control_plane: LocalControlPlane, namespace: str, exit_code: str, phase: str
    ) -> None:
        pod = sleeping_pod("ending")
        pod["metadata"]["annotations"] = {"simulate.muster.dev/exit-code": exit_code}
        control_plane.apply(pod, namespace=namespace)
        reached = "--for=jsonpath={.status.phase}=" + phase
        control_plane.kubectl("wait", reached, "pod/ending", "-n", namespace, "--timeout=180s")
        status = control_plane.get("pod", "ending", namespace=namespace)["status"]
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(exit_code)

    def test_what_an_owner_leaves_behind_is_collected(self, control_plane: LocalControlPlane, namespace: str) -> None:
        control_plane.apply(config_map("owner"), namespace=namespace)
        uid = control_plane.get("configmap", "owner", namespace=namespace)["metadata"]["uid"]
        owned = config_map("owned")
        owned["metadata"] = {
            "name": "owned",
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}],
        }
        control_plane.apply(owned, namespace=namespace)
        control_plane.kubectl("delete", "configmap", "owner", "-n", namespace)
        control_plane.kubectl("wait", "--for=delete", "configmap/owned", "-n", namespace, "--timeout=180s")


class TestKind:
    def test_a_control_plane_and_two_workers_are_ready(self, kind_cluster: Cluster) -> None:
        kind_cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=180s")
        nodes = kind_cluster.get("nodes")["items"]
        leaders = [node for node in nodes if "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]]
        assert (len(leaders), len(nodes)) == (1, 3)

    def test_a_pod_runs_where_its_gpus_are(self, kind_cluster: Cluster, namespace: str) -> None:
        kind_cluster.apply(gpu_pod("two", 2), namespace=namespace)
        kind_cluster.kubectl("wait", "--for=condition=Ready", "pod/two", "-n", namespace, "--timeout=180s")
        node = kind_cluster.get("node", kind_cluster.get("pod", "two", namespace=namespace)["spec"]["nodeName"])
        assert int(node["status"]["allocatable"]["nvidia.com/gpu"]) >= 2

    def test_a_pod_that_no_node_has_the_gpus_for_stays_pending(self, kind_cluster: Cluster, namespace: str) -> None:
        kind_cluster.apply(gpu_pod("greedy", 8), namespace=namespace)
        kind_cluster.kubectl("wait", UNSCHEDULABLE, "pod/greedy", "-n", namespace, "--timeout=180s")
        assert "Insufficient nvidia.com/gpu" in scheduling_message(kind_cluster, "greedy", namespace)

    def test_pods_on_both_workers_find_each_other_by_name(self, kind_cluster: Cluster, namespace: str) -> None:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "peers"},
            "spec": {"clusterIP": "None", "selector": {"app": "peers"}, "ports": [{"port": 8000}]},
        }
        kind_cluster.apply(service, namespace=namespace)
        for index in range(2):
            pod = sleeping_pod(f"peer-{index}", "exec python3 -m http.server 8000 -d /app")
            pod["metadata"]["labels"] = {"app": "peers"}
            pod["spec"] |= {"hostname": f"peer-{index}", "subdomain": "peers", "topologySpreadConstraints": [APART]}
            kind_cluster.apply(pod, namespace=namespace)
        kind_cluster.kubectl("wait", "--for=condition=Ready", "pod", "--all", "-n", namespace, "--timeout=180s")
        assert len({pod["spec"]["nodeName"] for pod in kind_cluster.get("pods", namespace=namespace)["items"]}) == 2
        script = f"""
import time, urllib.request
for _ in range(60):  # a name that was asked for too early is remembered as absent for a while
    try:
        print(urllib.request.urlopen("http://peer-1.peers.{namespace}.svc:8000/", timeout=5).status)
        break
    except OSError as error:
        print(error)
        time.sleep(1)
"""
        said = kind_cluster.kubectl("exec", "-n", namespace, "peer-0", "--", "python3", "-c", script)
        assert said.strip().endswith("200"), said
