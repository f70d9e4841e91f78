"""Helm, from the development tools' cache."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from muster_dev import tools

CHART = Path(__file__).resolve().parents[2] / "charts" / "muster"

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]


@pytest.fixture(scope="session")
def helm() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run helm; its exit code is the test's business."""
    tools.ensure(["helm"])

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(tools.path("helm")), *args], text=True, capture_output=True)

    return run


@pytest.fixture(scope="session")
def render(helm: Callable[..., subprocess.CompletedProcess[str]]) -> Render:
    """The objects of the chart with `--set` values, as they would be installed in muster-system."""

    def rendered(*values: str, flags: tuple[str, ...] = ()) -> Objects:
        sets = [part for value in values for part in ("--set", value)]
        done = helm("template", "muster", str(CHART), "--namespace", "muster-system", *sets, *flags)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    return rendered
