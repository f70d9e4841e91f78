"""How what was measured grows: black on white, told apart by line and marker."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import STYLE

_LINES = ("ko-", "ks--", "k^:", "kD-.")


@dataclass
class Panel:
    """One diagram: lines over the number of jobs, perhaps single points beside them, perhaps a goal."""

    title: str
    lines: dict[str, Sequence[tuple[float, float]]]
    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    goal: float | None = None
    jobs: str = "jobs"


def draw(path: Path, *panels: Panel) -> None:
    """Write the panels side by side."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
            _draw(axes, panel)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None})


def _draw(axes: Axes, panel: Panel) -> None:
    for (label, line), style in zip(panel.lines.items(), _LINES, strict=False):
        axes.plot(*zip(*line, strict=True), style, markersize=4, linewidth=1.2, label=label)
    for label, point in panel.points.items():
        axes.plot(*point, "kx", markersize=8, label=label)
    if panel.goal is not None:
        axes.axhline(panel.goal, color="k", linewidth=0.8, linestyle=(0, (1, 4)), label=f"goal: {panel.goal:g}")
    axes.set_title(panel.title)
    axes.set_xlabel(panel.jobs)
    axes.set_xlim(0, None)
    axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
    axes.legend(loc="upper left", ncols=2, fontsize=8)
