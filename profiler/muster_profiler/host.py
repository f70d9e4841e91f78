"""The machine and its limits as this process sees them: CPU, resident memory, cgroup limits (v1 and v2)."""

from __future__ import annotations

import os
import platform
import resource
from typing import Any

CGROUP = "/sys/fs/cgroup"


def device() -> dict[str, Any]:
    """The report's `device` of a script that trains on the CPU; its memory is what this container may use."""
    return {"kind": "cpu", "name": _cpu_name(), "memoryBytes": memory_limit(), "count": 1}


def memory_limit(root: str = CGROUP, membership: str = "/proc/self/cgroup") -> int:
    """The smallest of the machine's memory and the limits of this process's cgroup and those above it, in bytes."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for directory in _cgroups(root, membership):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(os.path.join(directory, name)).strip()
            if text.isdigit() and int(text):
                limits.append(int(text))
    return min(limits)


def memory_used(root: str = CGROUP, membership: str = "/proc/self/cgroup") -> int | None:
    """Bytes of this cgroup that the kernel cannot take back (anonymous memory); None if it does not tell."""
    for directory in _cgroups(root, membership):
        for line in _read(os.path.join(directory, "memory.stat")).splitlines():
            key, _, value = line.partition(" ")
            if key in ("anon", "total_rss") and value.isdigit():
                return int(value)
    return None


def _cgroups(root: str, membership: str) -> list[str]:
    """The directories of this process's memory cgroup, innermost first. In a container they are seen at the root."""
    found = []
    for line in _read(membership).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            base = root
        elif "memory" in controllers.split(","):
            base = os.path.join(root, "memory")
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        found += [os.path.join(base, *parts[:count]) for count in range(len(parts), -1, -1)]
    return found


def _read(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _cpu_name() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()[:200]
    return platform.processor() or platform.machine() or "CPU"


def restart_peak() -> None:
    """Begin a new peak of resident memory (Linux; elsewhere `peak` stays the whole run's)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak() -> int:
    """Peak resident bytes of this process since `restart_peak`, and what its children (loader workers) hold now."""
    for line in _read("/proc/self/status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 + _children()
    return whole_run_peak()


def whole_run_peak() -> int:
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _children() -> int:
    total = 0
    me = os.getpid()
    for number in _read("/proc/self/task/%d/children" % me).split():
        for line in _read("/proc/%s/status" % number).splitlines():
            if line.startswith("RssAnon:"):
                total += int(line.split()[1]) * 1024
    return total


def rank() -> int:
    return _number("RANK", 0)


def world() -> int:
    return _number("WORLD_SIZE", 1)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def environment() -> dict[str, str]:
    """The report's `environment`: versions and limits."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "python": platform.python_version(),
        "platform": platform.platform()[:200],
        "cpus": str(cpus),
        "memoryLimitBytes": str(memory_limit()),
    }
