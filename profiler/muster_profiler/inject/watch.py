"""Waits for a framework's import and starts the agent right after it, before the script goes on."""

from __future__ import annotations

import atexit
import importlib
import importlib.abc
import importlib.util
import multiprocessing.util
import os
import sys
from types import ModuleType, TracebackType
from typing import Any

from muster_profiler import agent, frameworks, trial


def start() -> None:
    """Called once in each Python process of a trial."""
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.searching = False

    def find_spec(self, fullname: str, *_: Any) -> Any:
        if fullname not in frameworks.MODULES or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """The framework's own loader, and the agent after it. The module keeps its own loader."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def create_module(self, spec: Any) -> Any:
        return self.original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.original
        module.__loader__ = self.original
        self.original.exec_module(module)
        try:
            _start_agent(module.__name__)
        except Exception as error:  # noqa: BLE001  the script must run, profiled or not
            print("muster-profile: cannot profile with this %s: %s" % (module.__name__, error), file=sys.stderr)


def _start_agent(module: str) -> None:
    settings = trial.Settings.read(os.environ[trial.SETTINGS])
    framework = importlib.import_module(frameworks.MODULES[module]).create()
    started = agent.Agent(framework, settings)
    framework.install(started)
    atexit.register(started.script_ended)
    multiprocessing.util.register_after_fork(started, _in_child)
    if multiprocessing.parent_process() is not None:
        _in_child(started)
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        started.failed(error)
        previous(kind, error, traceback)

    sys.excepthook = excepthook


def _in_child(started: agent.Agent) -> None:
    """Children of multiprocessing leave without `atexit`. One that has seen nothing of its own has nothing to say."""
    seen = started.clock.seen()

    def ended() -> None:
        if started.clock.seen() != seen:
            started.script_ended()

    multiprocessing.util.Finalize(None, ended, exitpriority=0)
