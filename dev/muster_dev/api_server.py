"""A Kubernetes API without a cluster: etcd and kube-apiserver as plain processes, up in seconds.

On top, where a test asks for them: kube-controller-manager (garbage collection, namespaces, service accounts),
kube-scheduler, and kwok, which plays kubelets so that nodes and pods may be simulated by the hundred.
"""

import base64
import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from muster_dev import cache, tools
from muster_dev.cluster import LOCAL_CONTEXT, Cluster, CommandError, is_ready
from muster_dev.shell import SetupError, run

CONTROL_PLANE = ("kube-controller-manager", "kube-scheduler", "kwok")

_ATTEMPTS = 3  # a port that was free can be taken between the look and the use
_READY_WITHIN_S = 90
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


class LocalControlPlane(Cluster):
    """etcd, kube-apiserver and the `components` asked for, in `folder` (certificates, data, `<component>.log`).

    Anyone with the token in `kubeconfig` is cluster admin; RBAC is on for everybody else.
    `flags` adds command-line flags by component, as {"kube-apiserver": ["--min-request-timeout=5"]} for short watches.
    Leashed processes die with the thread that started them, even when that is killed.
    """

    def __init__(
        self,
        folder: Path,
        components: Sequence[str] = (),
        flags: Mapping[str, Sequence[str]] | None = None,
        *,
        leashed: bool = True,
    ) -> None:
        super().__init__(folder / "kubeconfig", LOCAL_CONTEXT)
        self.folder = folder
        self.components = tuple(components)
        self._flags = flags or {}
        self._leashed = leashed
        self._admin_token = secrets.token_hex(16)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._api_port = self._etcd_port = 0

    @property
    def runs_controllers(self) -> bool:
        """Whether kube-controller-manager is one of the components."""
        return "kube-controller-manager" in self.components

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._api_port}"

    @property
    def etcd(self) -> str:
        return f"http://127.0.0.1:{self._etcd_port}"

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    def start(self) -> None:
        """Start everything and return when it is of use. Raises SetupError with the end of the log that tells why."""
        tools.ensure(["etcd", "kube-apiserver", "kubectl", *self.components])
        self._write_credentials()
        for attempt in range(1, _ATTEMPTS + 1):
            self._api_port, self._etcd_port, etcd_peer_port = _free_ports(3)
            try:
                self._start_etcd(etcd_peer_port)
                self.start_api_server()
                break
            except SetupError:
                self.stop()
                if attempt == _ATTEMPTS:
                    raise
        for component in self.components:
            self._start(component, *self._component_flags(component))
        if self.runs_controllers:
            self._await("kube-controller-manager", lambda: self._exists("serviceaccount/default"))

    def start_api_server(self) -> None:
        """Start kube-apiserver and wait until it is ready; after a stop, on the same port and the same data."""
        authority = ["--service-account-key-file", "sa.key", "--service-account-signing-key-file", "sa.key"]
        issuer = ["--service-account-issuer", "https://kubernetes.default.svc"]
        serving = ["--secure-port", str(self._api_port), "--bind-address", "127.0.0.1", "--cert-dir", "certs"]
        network = ["--advertise-address", "127.0.0.1", "--service-cluster-ip-range", "10.0.0.0/16"]
        access = ["--authorization-mode", "RBAC", "--token-auth-file", "tokens.csv"]
        # Nobody reconciles the endpoints of the `kubernetes` service, nor makes default service accounts without their
        # controller: with the admission plugin on, every pod would then be refused.
        alone = ["--endpoint-reconciler-type", "none"]
        if not self.runs_controllers:
            alone += ["--disable-admission-plugins", "ServiceAccount"]
        etcd = ["--etcd-servers", self.etcd]
        self._start("kube-apiserver", *etcd, *serving, *network, *issuer, *authority, *access, *alone)
        self._await("kube-apiserver", self._ready)
        self._write_kubeconfig()

    def stop_api_server(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Take kube-apiserver away; etcd keeps the objects, and the rest keeps trying to reach it."""
        self._end("kube-apiserver", how)

    def stop(self) -> None:
        """End every process, the clients of etcd before etcd."""
        for name in reversed(list(self._running)):
            self._end(name, signal.SIGKILL)

    def add_nodes(self, count: int, *, gpus: int = 0, prefix: str = "simulated") -> list[str]:
        """Create nodes that kwok keeps Ready, each with 32 CPUs, 256 GiB and `gpus` of nvidia.com/gpu."""
        names = [f"{prefix}-{index}" for index in range(count)]
        size = {"cpu": "32", "memory": "256Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        nodes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"capacity": size, "allocatable": size},
            }
            for name in names
        ]
        self.apply({"apiVersion": "v1", "kind": "List", "items": nodes})
        self._await("kwok", lambda: set(names) <= self._ready_nodes())
        return names

    def delete_namespace(self, name: str) -> None:
        """Delete the namespace and, where no controller does it, what is in it."""
        super().delete_namespace(name)
        if self.runs_controllers:
            return
        kinds = self.kubectl("api-resources", "--namespaced", "--verbs=delete,list", "-o", "name").split()
        self.kubectl("delete", ",".join(kinds), "--all", "-n", name, "--wait=false", "--force", "--grace-period=0")
        emptied = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
        self.kubectl("replace", "--raw", f"/api/v1/namespaces/{name}/finalize", "-f", "-", stdin=json.dumps(emptied))

    def _start_etcd(self, peer_port: int) -> None:
        client, peer = self.etcd, f"http://127.0.0.1:{peer_port}"
        urls = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        peers = ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        self._start("etcd", "--data-dir", "etcd", "--unsafe-no-fsync", "--log-level", "error", *urls, *peers)

    def _component_flags(self, component: str) -> list[str]:
        config = ["--kubeconfig", "kubeconfig"]
        alone = [*config, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"]
        if component == "kube-controller-manager":
            keys = ["--service-account-private-key-file", "sa.key", "--root-ca-file", "certs/apiserver.crt"]
            return [*alone, *keys]
        if component == "kube-scheduler":
            return alone
        stages = ["--config", str(cache.DEV / "kwok-stages.yaml")]
        return [*config, *stages, "--manage-all-nodes", "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40"]

    def _write_credentials(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        run("openssl", "genrsa", "-out", self.folder / "sa.key", "2048")
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self._admin_token},admin,admin,system:masters\n")

    def _write_kubeconfig(self) -> None:
        authority = base64.b64encode((self.folder / "certs" / "apiserver.crt").read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "local", "cluster": {"server": self.server, "certificate-authority-data": authority}}
            ],
            "users": [{"name": "admin", "user": {"token": self._admin_token}}],
            "contexts": [{"name": self.context, "context": {"cluster": "local", "user": "admin"}}],
            "current-context": self.context,
        }
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(json.dumps(config, indent=1))

    def _start(self, name: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [tools.path(name), *flags, *self._flags.get(name, ())],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for pytest, which then ends these in order
                preexec_fn=_die_with_parent if self._leashed else None,
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        if process := self._running.pop(name, None):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            process.wait()

    def _await(self, name: str, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while not true():
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                tail = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()[-15:]
                raise SetupError(f"{name} did not become ready:\n" + "\n".join(f"  {line}" for line in tail))
            time.sleep(0.05)

    def _ready(self) -> bool:
        request = urllib.request.Request(
            f"{self.server}/readyz", headers={"Authorization": f"Bearer {self._admin_token}"}
        )
        try:
            trust = ssl.create_default_context(cafile=str(self.folder / "certs" / "apiserver.crt"))
            with urllib.request.urlopen(request, timeout=5, context=trust) as answer:
                return bool(answer.status == 200)
        except OSError:  # no certificate yet, nobody listening, or (HTTPError) not ready
            return False

    def _ready_nodes(self) -> set[str]:
        nodes = self.get("nodes")["items"]
        return {node["metadata"]["name"] for node in nodes if is_ready(node)}

    def _exists(self, name: str) -> bool:
        try:
            self.kubectl("get", name)
        except CommandError:
            return False
        return True


@contextlib.contextmanager
def local_control_plane(
    components: Sequence[str] = (), flags: Mapping[str, Sequence[str]] | None = None
) -> Iterator[LocalControlPlane]:
    """A LocalControlPlane of its own for the block: a fresh folder and free ports, all gone afterwards."""
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"muster-api-{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        plane = LocalControlPlane(Path(folder), components, flags)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


def up(components: Sequence[str]) -> LocalControlPlane:
    """Start one that outlives this process, in place of an earlier one."""
    with cache.lock("api-server"):
        _down()
        plane = LocalControlPlane(_kept_folder(), components, leashed=False)
        try:
            plane.start()
        except BaseException:
            plane.stop()
            raise
        (_kept_folder() / "pids.json").write_text(json.dumps(plane.pids))
        return plane


def down() -> None:
    """End what `up` started."""
    with cache.lock("api-server"):
        _down()


def status() -> str:
    """In words, what of `up` runs."""
    return ", ".join(f"{name} {pid}" for name, pid in _kept_processes().items()) or "not up"


def _down() -> None:
    for pid in _kept_processes().values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    cache.remove(_kept_folder())


def _kept_processes() -> dict[str, int]:
    """The processes of `up` that run in its folder: a pid of a machine's earlier life may be anybody's by now."""
    pids = _kept_folder() / "pids.json"
    known: dict[str, int] = json.loads(pids.read_text()) if pids.exists() else {}
    here = _kept_folder().resolve()
    return {name: pid for name, pid in known.items() if Path(f"/proc/{pid}/cwd").resolve() == here}


def _kept_folder() -> Path:
    return cache.root() / "api-server"


def _sweep() -> None:
    """Remove the folders of test runs that were killed; their processes died with them."""
    for folder in Path(tempfile.gettempdir()).glob("muster-api-*-*"):
        if not Path("/proc", folder.name.split("-")[2]).exists():
            cache.remove(folder)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
