"""Images without a registry: Debian's base from debootstrap, Python and PyTorch on it, and the project's own on those.

The project's Dockerfiles take their base as an argument, so whoever reaches a registry builds the same on
`python:3.12-slim` or the like.
"""

import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from muster_dev import cache, engine
from muster_dev.shell import CannotRunHereError, apt_install, can_apt, run, say

DEBIAN = "local/debian:trixie"
PYTHON = "local/python:trixie"
PYTHON_TORCH = "local/python-torch:trixie"
_PUBLISHED = "python:3.12-slim"

PROJECT: Mapping[str, tuple[str, str, str]] = {  # image: its Dockerfile, its context, its base
    "muster-operator:dev": ("operator/Dockerfile", ".", PYTHON),
    "muster-profiler:dev": ("profiler/Dockerfile", "profiler", DEBIAN),
    "muster-examples:dev": ("examples/Dockerfile", "examples", PYTHON_TORCH),
}


def ensure_base(image: str) -> None:
    """Make a base image, in a moment where the engine has it and its Dockerfile is the same."""
    if image == DEBIAN:
        if not engine.image_exists(image):
            say(f"importing {image}")
            run("docker", "import", "--change", 'CMD ["bash"]', _root_filesystem(), image)
        return
    ensure_base(DEBIAN)
    say(f"building {image}")
    name = image.split("/")[1].split(":")[0]
    engine.build(image, cache.DEV / "images", dockerfile=cache.DEV / "images" / f"{name}.Dockerfile")


def build_project() -> list[str]:
    """Build the project's images from the tree, in seconds where only sources changed. Returns their names."""
    with cache.lock("images"):
        for image, (dockerfile, context, base) in PROJECT.items():
            arguments = {}  # a Dockerfile's own base is a published image
            if not engine.registry_reached(_PUBLISHED):
                ensure_base(base)
                arguments = {"BASE": base}
            say(f"building {image}")
            engine.build(image, cache.TREE / context, dockerfile=cache.TREE / dockerfile, **arguments)
    return list(PROJECT)


def _root_filesystem() -> Path:
    """Debian's smallest root file system as a tar file in the cache."""
    archive = cache.root() / f"debian-{cache.versions().debian}.tar"
    with cache.lock("debian"):
        if archive.exists():
            return archive
        if not can_apt():
            raise CannotRunHereError("base images are made by debootstrap, which needs root on Debian")
        if not shutil.which("debootstrap"):
            apt_install("debootstrap")
        say("fetching Debian's base system")
        _unmount_leftovers()
        with cache.building(archive) as part:
            tree = part.parent / "tree"
            log = cache.root() / "logs" / "debootstrap.log"
            suite = cache.versions().debian
            run("debootstrap", "--variant=minbase", "--include=ca-certificates", suite, tree, log=log)
            for litter in [*tree.glob("var/cache/apt/archives/*.deb"), *tree.glob("var/lib/apt/lists/*_*")]:
                cache.remove(litter)
            # Images trust the authorities that this machine trusts: it may reach the package registries by a proxy.
            trusted = Path("/etc/ssl/certs/ca-certificates.crt")
            if trusted.exists():
                shutil.copy(trusted, tree / "etc/ssl/certs/ca-certificates.crt")
            with tarfile.open(part, "w") as tar:
                tar.add(tree, arcname=".")
        return archive


def _unmount_leftovers() -> None:
    """An interrupted debootstrap leaves /proc and /sys mounted in its tree, which must not be removed with it."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for path in reversed([each for each in mounted if each.startswith(f"{cache.root()}/.debian-")]):
        run("umount", path)
