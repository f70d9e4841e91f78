"""The benchmark's plots: black on white, told apart by line, marker and hatch, never by colour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from muster.sizing.placement import even, largest_first, round_robin
from muster.sizing.prediction import Interval
from style import STYLE

from evidence.held_out import LARGE, MODELS, MUSTER, SMALL, Errors, small_large
from evidence.measured import WORKLOADS
from evidence.servers import PLACEMENTS, fullest


def errors(path: Path, interpolating: Mapping[str, Errors], extrapolating: Mapping[str, Errors], floor: float) -> None:
    """Median and 90th percentile of every model, side by side; `floor`: the median of repeated measurements."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        _dots(left, "Interpolating: placements never seen", interpolating, floor)
        _dots(right, f"Extrapolating: from {SMALL} GPUs to {LARGE}-64", extrapolating, floor)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        _save(figure, path)


def _dots(axes: Axes, title: str, held: Mapping[str, Errors], floor: float) -> None:
    names = list(held)[::-1]
    medians = [100 * float(np.median(held[name])) for name in names]
    worst = [100 * float(np.quantile(held[name], 0.9)) for name in names]
    rows = range(len(names))
    axes.hlines(rows, medians, worst, color="0.6", linewidth=1)
    axes.plot(medians, rows, "ko", label="median")
    axes.plot(worst, rows, "k|", markersize=11, label="90th percentile")
    axes.axvline(100 * floor, color="k", linewidth=0.8, linestyle=":", label="median between repeated measurements")
    axes.set_xscale("log")
    axes.set_xticks([3, 10, 30, 100], ["3 %", "10 %", "30 %", "100 %"])
    axes.set_xticks([], minor=True)
    axes.set_xlim(2.5, 300)
    axes.set_yticks(list(rows), names)
    axes.set_title(title)
    axes.set_xlabel("error of the predicted iteration time")


def scaling(path: Path) -> None:
    """Iterations of LARGE and more GPUs at one mini-batch, predicted from up to SMALL GPUs, with Muster's interval."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 5.4), layout="constrained")
        for axes, workload in zip(figure.subplots(2, 2).flat, WORKLOADS, strict=True):
            _scaling(axes, workload)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
        _save(figure, path)


def _scaling(axes: Axes, workload: str) -> None:
    kept, tested = small_large(workload)
    batches = sorted({s.configuration.minibatch for s in tested if s.configuration.gpus == 64})
    batch = batches[len(batches) // 2]
    shown = [s for s in tested if s.configuration.minibatch == batch]
    configurations = [s.configuration for s in shown]
    gpus = [c.gpus for c in configurations]
    low, centre, high = Interval.of(MUSTER, kept).predict(configurations)
    few = [s for s in kept if s.configuration.minibatch == batch]
    axes.plot([s.configuration.gpus for s in few], [1e3 * s.iteration for s in few], "k+", label="fitted on")
    axes.plot(gpus, [1e3 * s.iteration for s in shown], "ko", markersize=3, markerfacecolor="none", label="measured")
    sizes, band_low = _by_size(gpus, low)
    axes.fill_between(sizes, band_low, _by_size(gpus, high)[1], color="0.85", label="Muster, 90 %")
    axes.plot(sizes, _by_size(gpus, centre)[1], "k-", linewidth=1.6, label="Muster")
    for name, line in (("Lemma 2, sum", ":"), ("Pollux", "--")):
        axes.plot(
            *_by_size(gpus, MODELS[name].fit(kept).predict(configurations)),
            "k",
            linestyle=line,
            linewidth=1.2,
            label=name,
        )
    most = 1e3 * max(s.iteration for s in shown)
    axes.set_ylim(0, 1.45 * most)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axes.set_title(f"{WORKLOADS[workload]}, mini-batch {batch}")
    axes.set_xlabel("GPUs")
    axes.set_ylabel("iteration (ms)")


def _by_size(gpus: Sequence[int], seconds: Sequence[float] | Errors) -> tuple[list[int], list[float]]:
    """The median over all placements of each number of GPUs, in milliseconds."""
    sizes = sorted(set(gpus))
    return sizes, [1e3 * median(float(t) for n, t in zip(gpus, seconds, strict=True) if n == size) for size in sizes]


def tensors(path: Path) -> None:
    """The fullest server's load in even shares, by the number of servers, where whole tensors are placed."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        for axes, model in zip(figure.subplots(1, 3), ("resnet-50", "inception-v3", "vgg"), strict=True):
            servers = range(1, 17)
            for (label, place), line in zip(
                (
                    ("round robin", round_robin),
                    ("largest first", largest_first),
                    ("MXNet", PLACEMENTS["big arrays split (MXNet)"]),
                    ("even slices", even),
                ),
                ("-", "--", "-.", ":"),
                strict=True,
            ):
                axes.plot(servers, fullest(model, place, 16), "k", linestyle=line, linewidth=1.3, label=label)
            axes.set_title(model)
            axes.set_xlabel("servers")
            axes.set_xticks([1, 4, 8, 12, 16])
            axes.set_ylim(0, None)
        figure.axes[0].set_ylabel("fullest server / even share")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
