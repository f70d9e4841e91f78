"""The binaries that the clusters need, built from their Go modules: the one source that every machine reaches.

Each module is built through a small module of our own that requires it, because `go install module@version` refuses
modules with `replace` lines (Kubernetes, etcd).
"""

import functools
import json
import re
import shutil
from collections.abc import Collection
from pathlib import Path

from muster_dev import cache
from muster_dev.cache import Tool
from muster_dev.shell import CannotRunHereError, apt_install, can_apt, run, say

_OLDEST_GO = (1, 21)  # from there on Go fetches the newer toolchain that a module asks for


def path(binary: str) -> Path:
    """Where `binary` of the pinned version lies, or will lie when it is built."""
    tool = cache.versions().tool_of(binary)
    return cache.root() / "tools" / f"{tool.name}-{tool.version}" / binary


def ensure(binaries: Collection[str]) -> None:
    """Build those of `binaries` that the cache lacks. Raises SetupError where Go is missing or a build fails."""
    for tool in cache.versions().tools.values():
        wanted = [name for name in binaries if name in tool.packages]
        if all(path(name).exists() for name in wanted):
            continue
        with cache.lock(f"tools-{tool.name}-{tool.version}"):
            if missing := [name for name in wanted if not path(name).exists()]:
                _build(tool, missing)


def ensure_set(name: str) -> None:
    """Build what `dev/versions.toml` lists under `[sets]` for `name`."""
    ensure(cache.versions().sets[name])


def module_folder(tool: Tool) -> Path:
    """The unpacked source of the tool's module, in Go's own cache."""
    return Path(_download(f"{tool.module}@{tool.version}")["Dir"])


def build_file(source: Path, target: Path) -> None:
    """Build one Go file that imports nothing but the standard library."""
    _need_go()
    env = {**_go_env(), "GOFLAGS": ""}
    run("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", target, source, cwd=source.parent, env=env)


def _build(tool: Tool, binaries: list[str]) -> None:
    _need_go()
    say(f"building {', '.join(binaries)} {tool.version} (once, then kept in {cache.root()})")
    for name in binaries:
        package = "/".join(filter(None, [tool.module, tool.packages[name]]))
        log = cache.root() / "logs" / f"build-{name}.log"
        log.unlink(missing_ok=True)
        with cache.building(path(name)) as part:
            (part.parent / "go.mod").write_text(_go_mod(tool))
            (part.parent / "tools.go").write_text(f'//go:build tools\n\npackage tools\n\nimport _ "{package}"\n')
            flags = ["-trimpath", "-ldflags", f"-s -w {_stamp(tool)}", "-o", str(part)]
            run("nice", "go", "build", *flags, package, log=log, cwd=part.parent, env=_go_env())


def _go_mod(tool: Tool) -> str:
    """A go.mod that requires the module, with its replacements by sibling folders turned into published versions."""
    its_go_mod = Path(_download(f"{tool.module}@{tool.version}")["GoMod"]).read_text()
    go = re.search(r"^go (\S+)$", its_go_mod, re.MULTILINE)
    lines = [f"module muster.dev/build/{tool.name}", f"go {go[1] if go else '1.21'}"]
    lines += [f"require {tool.module} {tool.version}"]
    if tool.name == "kubernetes":  # k8s.io/api v0.35.4 is what Kubernetes v1.35.4 has in staging/
        staged = re.findall(r"(\S+) => \./staging/", its_go_mod)
        lines += [f"replace {name} => {name} {tool.version.replace('v1.', 'v0.', 1)}" for name in staged]
    return "\n".join(lines) + "\n"


def _stamp(tool: Tool) -> str:
    """Linker flags that tell a binary its version: kubeadm and kind compare what Kubernetes components report."""
    if tool.name != "kubernetes":
        return ""
    major, minor, _ = tool.version.removeprefix("v").split(".")
    values = {"gitVersion": tool.version, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())


@functools.cache
def _download(module_version: str) -> dict[str, str]:
    _need_go()
    fields: dict[str, str] = json.loads(run("go", "mod", "download", "-json", module_version, env=_go_env()))
    return fields


@functools.cache
def _go_env() -> dict[str, str]:
    # `direct` would try version control hosts, which hang where only the proxy is reachable. Without CGO every binary
    # is static: it runs in an empty image, and needs no C compiler here.
    proxies = run("go", "env", "GOPROXY").strip().replace(",direct", "")
    return {"GOPROXY": proxies, "GOFLAGS": "-mod=mod -buildvcs=false", "CGO_ENABLED": "0", "GOWORK": "off"}


@functools.cache
def _need_go() -> None:
    if not shutil.which("go") and can_apt():
        apt_install("golang-go")
    found = re.search(r"go(\d+)\.(\d+)", run("go", "version")) if shutil.which("go") else None
    if not found or (int(found[1]), int(found[2])) < _OLDEST_GO:
        wanted = ".".join(map(str, _OLDEST_GO))
        raise CannotRunHereError(
            f"Go {wanted} or later is needed to build the Kubernetes binaries, found {found[0] if found else 'none'}. "
            "Install it (Debian: the golang package of trixie or of bookworm-backports) and put it on PATH."
        )
