"""The container engine: the one that runs, else Debian's docker.io, installed and started."""

import functools
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from muster_dev import cache
from muster_dev.shell import CannotRunHereError, SetupError, apt_install, can_apt, run, say, succeeds

_CAP_SYS_RESOURCE = 24
_STARTS_WITHIN_S = 90
_RUNTIME = "without-sys-resource"


def ensure() -> None:
    """Return when `docker info` answers. Raises CannotRunHereError, saying what to install, where that cannot be."""
    with cache.lock("engine"):
        if not succeeds("docker", "info"):
            _install()
            _start()
    if lacks_sys_resource() and run("docker", "info", "-f", "{{.DefaultRuntime}}").strip() != _RUNTIME:
        raise CannotRunHereError(
            "this machine withholds CAP_SYS_RESOURCE, so the running Docker cannot start kind's privileged nodes. "
            "Stop its dockerd and start again: it is then started with a runtime that does without."
        )


def lacks_sys_resource() -> bool:
    """Whether the capability bounding set here withholds CAP_SYS_RESOURCE, as that of some sandboxes does."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapBnd:"):
            return not int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1
    return False


def on_cgroup_v1() -> bool:
    return not Path("/sys/fs/cgroup/cgroup.controllers").exists()


def image_id(image: str) -> str:
    return run("docker", "image", "inspect", "-f", "{{.Id}}", image).strip()


def image_exists(image: str) -> bool:
    return succeeds("docker", "image", "inspect", image)


@functools.cache
def registry_reached(image: str) -> bool:
    """Whether the image's registry answers, found out in a few seconds."""
    return succeeds("docker", "manifest", "inspect", image, timeout_s=10)


def build(tag: str, context: Path, *, dockerfile: Path | None = None, **arguments: str) -> None:
    """`docker build`, by the classic builder where there is no buildx, on this machine's network."""
    file = dockerfile or context / "Dockerfile"
    values = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    env = {} if succeeds("docker", "buildx", "version") else {"DOCKER_BUILDKIT": "0"}
    log = cache.root() / "logs" / f"image-{tag.replace('/', '_').replace(':', '_')}.log"
    log.unlink(missing_ok=True)
    run("docker", "build", "--network", "host", "-t", tag, "-f", file, *values, context, log=log, env=env)


def _install() -> None:
    if shutil.which("dockerd") and shutil.which("docker"):
        return
    if not can_apt():
        raise CannotRunHereError(
            "no container engine answers (`docker info` fails). Install and start Docker "
            "(Debian: `apt-get install docker.io`), or run as root on Debian, where that is done for you."
        )
    apt_install("docker.io", "iptables", "jq")


def _start() -> None:
    if os.geteuid() != 0:
        raise CannotRunHereError("Docker is installed but does not answer: start it, or let this user use its socket.")
    _clear_dead_pid_file(Path("/var/run/docker.pid"), "dockerd")
    _clear_dead_pid_file(Path("/var/run/docker/containerd/containerd.pid"), "containerd")
    flags = []
    if lacks_sys_resource():
        if not shutil.which("jq"):
            apt_install("jq")
        wrapper = cache.root() / "tools" / "runc-without-sys-resource"  # `clean` keeps that folder: dockerd uses it
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cache.DEV / wrapper.name, wrapper)
        wrapper.chmod(0o755)
        flags = ["--add-runtime", f"{_RUNTIME}={wrapper}", "--default-runtime", _RUNTIME]
    say("starting dockerd")
    path = cache.root() / "logs" / "dockerd.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as log:
        daemon = subprocess.Popen(
            ["dockerd", *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while not succeeds("docker", "info"):
        if daemon.poll() is not None or time.monotonic() > deadline:
            if daemon.poll() is None:
                os.killpg(daemon.pid, signal.SIGTERM)
            tail = "\n".join(path.read_text(errors="replace").splitlines()[-15:])
            raise SetupError(f"dockerd did not start (all of it: {path}):\n{tail}")
        time.sleep(0.3)


def _clear_dead_pid_file(path: Path, program: str) -> None:
    """A machine that was switched off leaves its pid file, and the number may be another process's by now."""
    try:
        pid = path.read_text().strip()
        alive = Path("/proc", pid, "comm").read_text().strip() == program
    except OSError:
        alive = False
    if not alive:
        path.unlink(missing_ok=True)
