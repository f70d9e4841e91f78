"""The cache folder: everything built is kept there by version, whole or not at all, and by one process at a time."""

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster_dev.shell import say

DEV = Path(__file__).resolve().parent.parent
TREE = DEV.parent


def root() -> Path:
    """`$MUSTER_CACHE`, else `muster` in the user's cache folder."""
    if named := os.environ.get("MUSTER_CACHE"):
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "muster"


@dataclass(frozen=True, eq=False)
class Tool:
    """A Go module and the binaries that are built from it (name -> package path below the module)."""

    name: str
    module: str
    version: str
    packages: dict[str, str]


@dataclass(frozen=True)
class Versions:
    """`dev/versions.toml`, the one place where versions are written."""

    debian: str
    kind_node: str
    tools: dict[str, Tool]
    sets: dict[str, list[str]]

    @property
    def kubernetes(self) -> str:
        return self.tools["kubernetes"].version

    def tool_of(self, binary: str) -> Tool:
        return next(tool for tool in self.tools.values() if binary in tool.packages)


@functools.cache
def versions() -> Versions:
    raw = tomllib.loads((DEV / "versions.toml").read_text())
    return Versions(
        debian=raw["debian"],
        kind_node=raw["kind_node"],
        tools={name: Tool(name=name, **fields) for name, fields in raw["tools"].items()},
        sets=raw["sets"],
    )


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the lock `name` of this cache folder. It goes with the process, however that ends."""
    path = root() / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds {path}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def building(target: Path) -> Iterator[Path]:
    """A fresh path beside `target` to build a folder or file at; it becomes `target` when the block ends well.

    Hold a lock around it: what earlier, interrupted builds of the same target left is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in target.parent.glob(f".{target.name}.part-*"):
        remove(leftover)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.part-", dir=target.parent) as scratch:
        part = Path(scratch) / target.name
        yield part
        remove(target)
        part.rename(target)


def remove(path: Path) -> None:
    """Remove a file or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
