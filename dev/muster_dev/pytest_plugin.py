"""The clusters as pytest fixtures, and what is kept when a test on one fails.

- `api_server`: etcd and kube-apiserver, in seconds; no pods.
- `control_plane`: those with kube-controller-manager, kube-scheduler and kwok: simulated nodes and pods.
- `kind_cluster`: a real cluster with the project's images loaded; minutes when nothing is cached.
- `namespace`: a fresh namespace on whichever of them the test uses.
- `artifacts`: a folder for the test's own logs, kept when it fails.

`--kubeconfig PATH --context NAME` puts `api_server` and `kind_cluster` on a cluster of yours instead.
"""

import contextlib
import re
import secrets
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from muster_dev import diagnostics, kind, tools
from muster_dev.api_server import CONTROL_PLANE, LocalControlPlane, local_control_plane
from muster_dev.cache import TREE
from muster_dev.cluster import Cluster, refuse_foreign
from muster_dev.shell import CannotRunHereError

_CLUSTER_FIXTURES = ("kind_cluster", "control_plane", "own_api_server", "api_server")
_KEPT = pytest.StashKey[list[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("muster", "clusters")
    group.addoption("--kubeconfig", type=Path, help="with --context: the cluster to run cluster tests on")
    group.addoption("--context", help="the one cluster not made here that tests may touch")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_KEPT] = list[Path]()
    if bool(config.getoption("--kubeconfig")) != bool(config.getoption("--context")):
        raise pytest.UsageError("--kubeconfig and --context name a cluster together: give both or neither")


@pytest.fixture(scope="session")
def api_server(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A Kubernetes API with RBAC, CRDs and nothing that acts on objects."""
    if named := _named(pytestconfig):
        yield named
        return
    with _skipping(), local_control_plane() as plane:
        yield plane


@pytest.fixture
def own_api_server() -> Iterator[LocalControlPlane]:
    """An `api_server` for one test, which may stop it, start it again, and leave it in any state."""
    with _skipping(), local_control_plane() as plane:
        yield plane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[LocalControlPlane]:
    """A whole control plane with four simulated nodes of eight GPUs; `add_nodes` makes more."""
    with _skipping(), local_control_plane(CONTROL_PLANE) as plane:
        plane.add_nodes(4, gpus=8)
        yield plane


@pytest.fixture(scope="session")
def kind_cluster(pytestconfig: pytest.Config) -> Cluster:
    """A real cluster: a control plane, two workers with GPUs, the project's images. It stays for the next run."""
    if named := _named(pytestconfig):
        return named
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with _skipping(), capture.global_and_fixture_disabled():  # minutes, the first time: let its progress be seen
        return kind.up()


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace on the cluster that the test uses, deleted afterwards."""
    cluster = _cluster_of(request)
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{slug}-{secrets.token_hex(3)}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_namespace(name)


@pytest.fixture
def artifacts(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder for logs that explain a failure (`operator.log`, say). It is kept only when the test fails."""
    folder = _artifact_folder(request.node)
    folder.mkdir(parents=True)
    yield folder
    if folder not in request.config.stash[_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


class _KindBesideTheRest(LoadScopeScheduling):  # type: ignore[misc]
    """For `pytest -n 2`: one process has the kind cluster to itself, the other runs whole files of the rest."""

    def _split_scope(self, nodeid: str) -> str:
        return "kind" if _on_kind(nodeid) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _KindBesideTheRest(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not _on_kind(item.nodeid))  # the longest part begins first


def _on_kind(nodeid: str) -> bool:
    return nodeid.startswith("tests/e2e/kind/") or "::TestKind::" in nodeid


def pytest_runtest_setup(item: pytest.Item) -> None:
    shutil.rmtree(_artifact_folder(item), ignore_errors=True)  # what an earlier run kept explains nothing of this one


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    clusters = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Cluster)]
    if report.failed and call.when != "teardown" and (clusters or "artifacts" in getattr(item, "fixturenames", ())):
        folder = _artifact_folder(item)
        for cluster in clusters:
            diagnostics.collect(cluster, folder, namespace=item.funcargs.get("namespace"))  # type: ignore[attr-defined]
        item.config.stash[_KEPT].append(folder)
        report.sections.append(("kept for this failure", str(folder)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    kept: list[Path] = config.stash[_KEPT]
    for folder in dict.fromkeys(kept):
        terminalreporter.write_line(f"logs, events and objects of a failed test: {folder.relative_to(TREE)}")


@contextlib.contextmanager
def _skipping() -> Iterator[None]:
    """Turn "this machine cannot run it" into a skip with the reason. A build or a start that fails stays an error."""
    try:
        yield
    except CannotRunHereError as error:
        pytest.skip(str(error))


def _named(config: pytest.Config) -> Cluster | None:
    if not config.getoption("--context"):
        return None
    tools.ensure(["kubectl"])
    return Cluster(config.getoption("--kubeconfig"), config.getoption("--context"))


def _cluster_of(request: pytest.FixtureRequest) -> Cluster:
    for name in _CLUSTER_FIXTURES:
        if name in request.fixturenames:
            cluster: Cluster = request.getfixturevalue(name)
            refuse_foreign(cluster.context, named=request.config.getoption("--context"))
            return cluster
    raise pytest.UsageError(f"`namespace` needs a cluster: let {request.node.name} use one of {_CLUSTER_FIXTURES}")


def _artifact_folder(item: pytest.Item) -> Path:
    return TREE / "test-artifacts" / re.sub(r"[^A-Za-z0-9_.-]+", "-", item.nodeid.removeprefix("tests/")).strip("-")
