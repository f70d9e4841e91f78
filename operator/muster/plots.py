"""The three curves behind a plan, as one picture: why this mini-batch, these GPUs, these servers.

Black on white, told apart by line and marker alone; words stand only where nothing is drawn. Matplotlib is an extra:
import this module only when there is something to draw.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from muster.api.job import Goal
from muster.api.report import Report
from muster.api.status import Plan
from muster.sizing import Curves, Limits, curves, text
from muster.sizing.goals import Kind, Target

_STYLE: dict[str, object] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "savefig.dpi": 150,
}
_LABEL_CHARACTERS = 30
"""What fits below one panel, so that names of mini-batches neither touch nor turn."""
_FEWEST, _AROUND = 8, 3
"""An axis of counts goes to 8 at least, and else to 3 times the chosen count."""


def draw(report: Report, goal: Goal, limits: Limits, plan: Plan, path: Path) -> None:
    """Write the picture to `path`, in the format of its suffix.

    Raises:
        ValueError: the suffix is no format that can be written.
        OSError: the file cannot be written.
    """
    figure = picture(curves(report, goal, limits, None), plan)
    with mpl.rc_context(_STYLE):
        figure.savefig(path)


def picture(found: Curves, plan: Plan) -> Figure:
    """Two panels, or three where there are parameter servers, each with the plan's number in its title."""
    chosen = _Chosen.of(found, plan)
    with mpl.rc_context(_STYLE):
        panels = 3 if found.servers else 2
        figure = Figure(figsize=(3.9 * panels, 4.2), layout="constrained")
        axes = figure.subplots(1, panels, gridspec_kw={"wspace": 0.12})
        _batches(axes[0], found, chosen)
        _scaling(axes[1], found, chosen)
        if found.servers:
            _servers(axes[2], found, chosen)
    return figure


@dataclass(frozen=True)
class _Chosen:
    """The plan's own numbers. `baseline`: samples per second of one GPU at the best mini-batch."""

    minibatch: int
    gpus: int
    servers: int
    baseline: float

    @classmethod
    def of(cls, found: Curves, plan: Plan) -> "_Chosen":
        speedup = float(plan.predicted.speedup)
        return cls(
            minibatch=plan.mini_batch.value,
            gpus=found.chosen_gpus,
            servers=plan.servers.value,
            baseline=plan.predicted.samples_per_second / speedup if speedup else 0.0,
        )


def _batches(left: Axes, found: Curves, chosen: _Chosen) -> None:
    """Mini-batch against throughput and memory. The axis is one step a mini-batch, however far apart they are."""
    right = left.twinx()
    names = [str(point.minibatch) for point in found.batches]
    rated = [(i, p.samples_per_second) for i, p in enumerate(found.batches) if p.samples_per_second is not None]
    sized = [(i, p.peak_bytes / 2**30) for i, p in enumerate(found.batches) if p.peak_bytes is not None]
    left.plot(*_columns(rated), "ko-", markersize=4, label="samples per second, one GPU")
    right.plot(*_columns(sized), "ks--", markersize=4, markerfacecolor="white", label="peak memory")
    if found.memory_bound:
        right.axhline(found.memory_bound / 2**30, color="k", linestyle=":", label="memory bound")
    unfit = [i for i, point in enumerate(found.batches) if not point.fits]
    if unfit:
        left.plot(unfit, [0] * len(unfit), "kx", markersize=7, clip_on=False, label="does not fit")
    for i, rate in rated:
        if found.batches[i].minibatch == found.chosen_batch:
            _ring(left, i, rate)
    step = -(-len(names) // max(1, _LABEL_CHARACTERS // max(map(len, names))))
    left.set_xticks(range(0, len(names), step), names[::step])
    left.set_xlim(-0.5, len(names) - 0.5)
    left.set_ylim(0, 1.1 * max((rate for _, rate in rated), default=1.0))
    right.set_ylim(0, 1.1 * max(found.memory_bound / 2**30, *(size for _, size in sized), 1e-3))
    left.set_xlabel("mini-batch (samples per GPU)")
    left.set_ylabel("samples per second")
    right.set_ylabel("memory (GiB)")
    shared = f", {chosen.minibatch} on each GPU" if chosen.minibatch != found.chosen_batch else ""
    left.set_title(f"Mini-batch: {found.chosen_batch}{shared}")
    _legend(left, right)


def _scaling(axes: Axes, found: Curves, chosen: _Chosen) -> None:
    """GPUs against speed-up, with what the goal asks of each number of them."""
    shown = [(gpus, speedup) for gpus, speedup, _ in found.scaling if gpus <= _reach(chosen.gpus)]
    gpus, speedups = _columns(shown)
    axes.plot(gpus, gpus, color="0.6", linewidth=0.8, label="linear")
    axes.plot(gpus, speedups, "ko-", markersize=3, label="predicted")
    asked = [_asked(found.goal, count, chosen.baseline) for count in gpus]
    axes.plot(gpus, asked, "k--", label=f"goal: {found.goal.words(found.goal.value)}")
    for count, speedup in shown:
        if count == chosen.gpus:
            _ring(axes, count, speedup)
    axes.set_ylim(0, 1.1 * max(*gpus, *(speedups), min(max(asked), 1.5 * max(gpus))))
    _counts(axes, "GPUs", "speed-up", f"GPUs: {chosen.gpus}")


def _asked(goal: Target, gpus: float, baseline: float) -> float:
    """The speed-up that meets the goal with `gpus` GPUs."""
    match goal.kind:
        case Kind.EFFICIENCY:
            return goal.value * gpus
        case Kind.SPEEDUP:
            return goal.value
        case Kind.DEADLINE:
            return goal.samples / goal.value / baseline
        case Kind.COST:
            return goal.samples * gpus / goal.value / baseline


def _servers(axes: Axes, found: Curves, chosen: _Chosen) -> None:
    """Servers against the iteration, and the knee, from which their traffic hides."""
    shown = [(count, 1e3 * seconds) for count, seconds in found.servers if count <= _reach(chosen.servers)]
    counts, times = _columns(shown)
    axes.plot(counts, times, "ko-", markersize=3, label="predicted iteration")
    if 0 < found.knee <= max(counts):
        axes.axvline(found.knee, color="k", linestyle=":", label=f"knee by Lemma 2: {text.number(found.knee)}")
    for count, time in shown:
        if count == chosen.servers:
            _ring(axes, count, time)
    axes.set_ylim(0, 1.1 * max(times))
    _counts(axes, "servers", "iteration (ms)", f"Servers: {chosen.servers}")


def _reach(chosen: int) -> int:
    return max(_FEWEST, _AROUND * chosen)


def _ring(axes: Axes, x: float, y: float) -> None:
    axes.plot([x], [y], "o", color="k", markersize=12, markerfacecolor="none", markeredgewidth=1.6, label="chosen")


def _counts(axes: Axes, x: str, y: str, title: str) -> None:
    axes.spines["right"].set_visible(False)
    axes.set_xlim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    _legend(axes)


def _legend(axes: Axes, *others: Axes) -> None:
    """Below the panel, so that it hides no curve."""
    drawn = [pair for one in (axes, *others) for pair in zip(*one.get_legend_handles_labels(), strict=True)]
    handles, labels = zip(*drawn, strict=True)
    axes.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.22), handlelength=2.6)


def _columns(rows: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [x for x, _ in rows], [y for _, y in rows]
