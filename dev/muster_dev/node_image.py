"""A node image for kind where `kindest/node` cannot be pulled, from Debian packages and Go modules.

What kind expects in one: systemd and containerd with kind's own boot files, kubelet and kubeadm, and the control
plane's images already in containerd, under the names that kubeadm asks for.
"""

import contextlib
import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from pathlib import Path

from muster_dev import cache, engine, images, tools
from muster_dev.shell import SetupError, run, say, succeeds

_FILES = cache.DEV / "node"
_NETWORK = "docker.io/muster/network:dev"  # named in node/default-cni.yaml
_BASE = "muster/kind-node-base:dev"


def ensure() -> str:
    """The name of the node image, built unless the engine has it. Changed inputs make a new name."""
    image = f"muster/kind-node:{cache.versions().kubernetes}-{_digest_of_inputs()}"
    with cache.lock("node-image"):
        if not engine.image_exists(image):
            tools.ensure_set("node-image")
            images.ensure_base(images.DEBIAN)
            say("building the node image")
            _build(image)
            _remove_earlier(image)
    return image


def _remove_earlier(image: str) -> None:
    """Node images of older inputs, but for one that a cluster still runs: the engine refuses that."""
    for name in run("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", image.split(":")[0]).split():
        if name != image:
            succeeds("docker", "image", "rm", name)


def _digest_of_inputs() -> str:
    versions = cache.versions()
    parts = {versions.tool_of(name) for name in versions.sets["node-image"]} | {versions.tools["kind"]}
    digest = hashlib.sha256(repr(sorted(f"{tool.module}@{tool.version}" for tool in parts)).encode())
    for path in [Path(__file__), *sorted(_FILES.iterdir())]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _build(image: str) -> None:
    names = _control_plane_images()
    with tempfile.TemporaryDirectory(prefix="node-image-", dir=cache.root()) as folder:
        work = Path(folder)
        tools.build_file(_FILES / "pause.go", work / "pause")
        for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "coredns"):
            _image_of_one_file(names[component], tools.path(component), "/coredns" if component == "coredns" else None)
        _image_of_one_file(names["pause"], work / "pause", "/pause")
        _build_network_image(work / "network", names["kube-proxy"])
        run("docker", "save", "-o", work / "images.tar", *names.values(), _NETWORK)
        _build_base(work / "base", names["pause"])
        _commit_with_images(work / "images.tar", image)


def _control_plane_images() -> dict[str, str]:
    """kubeadm's own list: the last part of the name -> the whole name with its tag."""
    listed = run(tools.path("kubeadm"), "config", "images", "list", "--kubernetes-version", cache.versions().kubernetes)
    return {name.rsplit("/", 1)[1].split(":")[0]: name for name in listed.split()}


def _image_of_one_file(image: str, binary: Path, at: str | None = None) -> None:
    """An image of nothing but a static binary: /usr/local/bin/NAME unless `at` says where."""
    inside = at or f"/usr/local/bin/{binary.name}"
    with tempfile.TemporaryDirectory(dir=cache.root()) as folder:
        archive = Path(folder) / "image.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(binary, arcname=inside)
        change = ["--change", f'ENTRYPOINT ["{inside}"]', "--change", "ENV PATH=/usr/local/bin:/usr/bin:/bin"]
        run("docker", "import", *change, archive, image)


def _build_network_image(context: Path, kube_proxy: str) -> None:
    context.mkdir()
    _link(tools.path("kube-proxy"), context / "kube-proxy")
    shutil.copy(_FILES / "cni-agent.sh", context)
    engine.build(_NETWORK, context, dockerfile=_FILES / "network.Dockerfile")
    run("docker", "tag", _NETWORK, kube_proxy)


def _build_base(context: Path, pause: str) -> None:
    boot_files = tools.module_folder(cache.versions().tools["kind"]) / "images" / "base" / "files"
    shutil.copytree(boot_files, context / "files")
    run("chmod", "-R", "u+w", context)  # Go's module cache is read-only
    for name in ("default-cni.yaml", "host-guard.sh"):
        shutil.copy(_FILES / name, context)
    (context / "files" / "kind" / "version").write_text(cache.versions().kubernetes)
    (context / "bin").mkdir()
    for binary in ("kubelet", "kubeadm", "kubectl", "crictl"):
        _link(tools.path(binary), context / "bin" / binary)
    engine.build(_BASE, context, dockerfile=_FILES / "Dockerfile", PAUSE=pause)


def _commit_with_images(archive: Path, image: str) -> None:
    """Import the control plane's images into the containerd of a node that is not booted, and keep that as `image`."""
    container = f"muster-node-image-{os.getpid()}"
    privileged = ["--privileged", "--security-opt", "seccomp=unconfined", "--entrypoint", "sleep"]
    run("docker", "run", "-d", *privileged, "--name", container, _BASE, "infinity")
    try:
        run("docker", "exec", "-d", container, "containerd")
        deadline = time.monotonic() + 60
        while not succeeds("docker", "exec", container, "ctr", "version"):
            if time.monotonic() > deadline:
                raise SetupError("containerd did not start in the node image")
            time.sleep(0.3)
        run("docker", "cp", archive, f"{container}:/images.tar")
        keep = ["--label", "io.cri-containerd.pinned=pinned", "--all-platforms", "--no-unpack", "--digests"]
        run("docker", "exec", container, "ctr", "-n", "k8s.io", "images", "import", *keep, "/images.tar")
        stop = "kill $(pidof containerd) && while pidof containerd; do sleep 0.1; done"
        run("docker", "exec", container, "sh", "-c", f"{stop}; rm -rf /run/containerd /images.tar")
        entry = 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]'
        run("docker", "commit", "--change", entry, container, image)
    finally:
        run("docker", "rm", "-f", "-v", container)


def _link(source: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        os.link(source, target)
        return
    shutil.copy(source, target)
