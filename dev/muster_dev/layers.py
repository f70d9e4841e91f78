"""Loading an image into a node without the layers that the node has already.

`kind load` sends whole images. A changed source changes the last few kilobytes of one, so this sends an OCI archive in
which the blobs of known layers are left out: containerd looks for a layer's blob only when it lacks the unpacked layer.
"""

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from muster_dev import cache
from muster_dev.shell import SetupError, run

_BLOBS = "blobs/sha256/"


def load(image: str, nodes: Iterable[str]) -> None:
    """Load an image of the engine into nodes. Raises SetupError where containerd does not take it."""
    with tempfile.TemporaryDirectory(prefix="load-", dir=cache.root()) as folder:
        saved = Path(folder) / "image.tar"
        run("docker", "save", "-o", saved, image)
        for node in nodes:
            archive = Path(folder) / f"{node}.tar"
            _write_missing(saved, archive, image, _unpacked_on(node))
            _import(archive, node)


def chain_ids(diff_ids: list[str]) -> list[str]:
    """What a snapshotter calls each unpacked layer: by itself and all layers below it."""
    chains = diff_ids[:1]
    for diff_id in diff_ids[1:]:
        chains.append("sha256:" + hashlib.sha256(f"{chains[-1]} {diff_id}".encode()).hexdigest())
    return chains


def _unpacked_on(node: str) -> set[str]:
    listed = run("docker", "exec", node, "ctr", "-n", "k8s.io", "snapshots", "ls").splitlines()[1:]
    return {line.split()[0] for line in listed if line.strip()}


def _import(archive: Path, node: str) -> None:
    ctr = ["ctr", "-n", "k8s.io", "images", "import", "--snapshotter", "overlayfs", "-"]
    with archive.open("rb") as data:
        done = subprocess.run(["docker", "exec", "-i", node, *ctr], stdin=data, capture_output=True, text=True)
    if done.returncode != 0:
        raise SetupError(f"{node} does not take the image: {done.stderr.strip()}")


def _write_missing(saved: Path, archive: Path, image: str, unpacked: set[str]) -> None:
    """Turn what `docker save` wrote into an OCI archive without the layers in `unpacked`."""
    with tarfile.open(saved) as source, tarfile.open(archive, "w") as target:
        [listed] = json.loads(_read(source, "manifest.json"))
        config = _read(source, listed["Config"])
        diff_ids: list[str] = json.loads(config)["rootfs"]["diff_ids"]
        layers = []
        for path, diff_id, chain in zip(listed["Layers"], diff_ids, chain_ids(diff_ids), strict=True):
            member = _resolve(source, path)
            layers.append(_descriptor("layer.v1.tar", diff_id, member.size))
            if chain not in unpacked:
                blob = tarfile.TarInfo(_BLOBS + diff_id.removeprefix("sha256:"))
                blob.size = member.size
                target.addfile(blob, source.extractfile(member))
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": _descriptor("config.v1+json", _digest(config), len(config)),
                "layers": layers,
            }
        ).encode()
        entry = _descriptor("manifest.v1+json", _digest(manifest), len(manifest))
        entry["annotations"] = {"io.containerd.image.name": _full_name(image)}
        for blob_bytes in (config, manifest):
            _add(target, _BLOBS + _digest(blob_bytes).removeprefix("sha256:"), blob_bytes)
        _add(target, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(target, "index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())


def _resolve(source: tarfile.TarFile, path: str) -> tarfile.TarInfo:
    """The layer itself: an image that has the same layer twice is saved with a link in the second place."""
    member = source.getmember(path)
    if member.issym():
        return source.getmember(str(Path(path).parent.parent / Path(member.linkname).relative_to("..")))
    return member


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": size}


def _full_name(image: str) -> str:
    return image if "/" in image else f"docker.io/library/{image}"


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _read(source: tarfile.TarFile, name: str) -> bytes:
    member = source.extractfile(name)
    assert member is not None, f"{name} is a file in every saved image"
    return member.read()


def _add(target: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    target.addfile(info, io.BytesIO(data))
