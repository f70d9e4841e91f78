"""The release as Helm keeps it: installed, upgraded, removed and installed again."""

import pytest
from chart.conftest import CHART
from muster_dev.api_server import LocalControlPlane

NAMESPACE = ("--namespace", "muster-system")


@pytest.mark.scenario("D8")
def test_a_release_leaves_nothing_but_the_crd_and_can_come_back(own_api_server: LocalControlPlane) -> None:
    def left() -> list[str]:
        kinds = "deploy,svc,sa,role,rolebinding,clusterrole,clusterrolebinding,lease,networkpolicy,configmap,secret"
        named = own_api_server.kubectl("get", kinds, *NAMESPACE, "-o", "name").split()
        return [name for name in named if "muster" in name]

    install = ("install", "muster", str(CHART), *NAMESPACE, "--create-namespace")
    own_api_server.helm(*install)
    assert left()
    own_api_server.helm("upgrade", "muster", str(CHART), *NAMESPACE, "--set", "replicas=2,networkPolicy.enabled=true")
    assert "lease.coordination.k8s.io/muster" in left()
    own_api_server.helm("uninstall", "muster", *NAMESPACE)
    assert left() == []
    assert "trainingjobs" in own_api_server.kubectl("get", "crd", "-o", "name")
    own_api_server.helm(*install)
    assert left()
