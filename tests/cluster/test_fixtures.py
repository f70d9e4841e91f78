"""The clusters that the other tests stand on are what those tests take them for."""

import pytest
from muster_dev.api_server import LocalControlPlane
from muster_dev.cluster import Cluster, CommandError, ForeignClusterError, refuse_foreign

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


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"answer": "42"}}


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
