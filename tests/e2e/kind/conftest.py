"""The operator, installed by its chart on a real cluster, once for all tests of this folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jobs import report_config_map
from support.live import Namespace

ROOT = Path(__file__).parents[3]
RELEASE, OPERATOR_NAMESPACE = "muster", "muster-system"


@pytest.fixture(scope="session")
def install(kind_cluster: Any) -> Callable[..., None]:
    """Installs or upgrades the release, and waits until the operator is ready."""

    def install(*extra: str) -> None:
        kind_cluster.helm(
            *(
                "upgrade",
                "--install",
                RELEASE,
                str(ROOT / "charts/muster"),
                "--namespace",
                OPERATOR_NAMESPACE,
                "--create-namespace",
            ),
            *("--set", "image.tag=dev"),
            *("--set", "profiler.image.tag=dev"),
            *("--wait", "--timeout", "3m", *extra),
        )

    return install


@pytest.fixture(scope="session")
def installed(kind_cluster: Any, install: Callable[..., None]) -> Any:
    kind_cluster.drop_interrupted(RELEASE, OPERATOR_NAMESPACE)
    install()
    kind_cluster.kubectl(
        "-n", OPERATOR_NAMESPACE, "rollout", "restart", "deploy"
    )  # the image's tag is the same when its content is not
    kind_cluster.kubectl("-n", OPERATOR_NAMESPACE, "rollout", "status", "deploy", "--timeout=120s")
    return kind_cluster


@pytest.fixture
def cluster(installed: Any, namespace: str) -> Namespace:
    """A fresh namespace with a profile in it, watched by the operator."""
    here = Namespace(installed, namespace)
    here.apply(report_config_map())
    return here


@pytest.fixture
def kill_operator(installed: Any) -> Callable[[], None]:
    """Kills the operator's pod at once; the Deployment brings a new one."""

    def kill() -> None:
        pods = json.loads(installed.kubectl("-n", OPERATOR_NAMESPACE, "get", "pods", "-o", "json"))["items"]
        for pod in pods:
            installed.kubectl(
                "-n",
                OPERATOR_NAMESPACE,
                "delete",
                "pod",
                pod["metadata"]["name"],
                "--grace-period=0",
                "--force",
                "--wait=false",
            )

    return kill
