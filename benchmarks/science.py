"""Holds the sizing rules against measured data: `python benchmarks/science.py` writes docs/science.md and its plots.

Deterministic; about a minute of one core. Every number of the page is computed here; evidence/science.md has its prose.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

import numpy as np
from evidence import drawings, held_out, servers
from evidence.held_out import FORMS, MODELS, MUSTER, STEPS, Errors, Held, pooled
from evidence.measured import WORKLOADS, runs

PAGE = Path(__file__).parent.parent / "docs" / "science.md"
TEMPLATE = Path(__file__).parent / "evidence" / "science.md"
IMAGES = PAGE.parent / "images"

GOAL = 5.0
"""Percent: the median error that Muster is built for."""
STATISTICS = {"median": 0.5, "90th percentile": 0.9}
Fields = dict[str, str]


def main() -> None:
    """Run every experiment, write the page."""
    print("predicting iterations that were held out ...", flush=True)
    near = {name: held_out.interpolate(model) for name, model in MODELS.items()}
    far = {name: held_out.extrapolate(model) for name, model in MODELS.items()}
    fields = _predictions(near, far)
    print("choosing the form of Muster's law ...", flush=True)
    fields |= _choice()
    print("checking the intervals ...", flush=True)
    fields |= _coverage()
    fields |= _tensorflow() | _tensors() | _shaped()
    print("drawing ...", flush=True)
    drawings.errors(IMAGES / "science-errors.png", _pool(near), _pool(far), float(fields["floor_median"]) / 100)
    drawings.scaling(IMAGES / "science-scaling.png")
    drawings.tensors(IMAGES / "science-tensors.png")
    PAGE.write_text(Template(TEMPLATE.read_text()).substitute(fields))
    for name in ("muster_near", "pollux_near", "muster_far", "pollux_far", "known_far", "chosen_near", "chosen_far"):
        print(f"{name:12} {fields[name]:>5} % median error")
    print(f"written: {PAGE}")


def _predictions(near: Mapping[str, Held], far: Mapping[str, Held]) -> Fields:
    told = held_out.told_everything(MUSTER)
    largest = held_out.SIZES[-1]
    unseen = {name: held_out.unseen_batch(model) for name, model in MODELS.items()}
    known, repeats = held_out.extrapolate(MUSTER, held_out.known_network), held_out.repeats()
    rival = min((name for name in far if name != "Muster"), key=lambda name: _median(far[name]))
    better = sum(np.median(known[w]) < np.median(far["Muster"][w]) for w in WORKLOADS)
    medians = {
        "muster_near": near["Muster"], "muster_far": far["Muster"],
        "pollux_near": near["Pollux"], "pollux_far": far["Pollux"],
        "lemma_near": near["Lemma 2, sum"], "lemma_far": far["Lemma 2, sum"],
        "rival_far": far[rival], "known_far": known, "floor_median": repeats,
        "told_far": told,
    }  # fmt: skip
    return {
        **{name: f"{_median(held):.1f}" for name, held in medians.items()},
        "goal": f"{GOAL:.0f}",
        "met_near": _met(near["Muster"]),
        "met_far": _met(far["Muster"]),
        "rival": rival,
        "known_better": str(better),
        "known_all": str(len(WORKLOADS)),
        "samples": f"{sum(len(runs(workload)) for workload in WORKLOADS):,}",
        "workloads": "; ".join(WORKLOADS.values()),
        "repeats": f"{len(pooled(repeats)):,}",
        "floor_worst": _percent(pooled(repeats), 0.9),
        "folds": str(held_out.FOLDS),
        "small": str(held_out.SMALL),
        "large": str(held_out.LARGE),
        "interpolating": _errors({**near, "*repeated measurements*": repeats}),
        "extrapolating": _errors({**far, "*Muster, network known*": known}),
        "told_largest": _percent(held_out.by_size(told)["{} to {}".format(*largest)], 0.5),
        "too_low": f"{100 * held_out.too_low(largest[0] - 1):.0f}",
        "sizes": _sizes({**far, "*Muster, network known*": known}),
        "unseen": _errors(unseen),
        "losses": _losses({"interpolating": near, "extrapolating": far, "mini-batch never measured": unseen}),
    }


def _sizes(far: Mapping[str, Held]) -> str:
    rows = {name: held_out.by_size(held) for name, held in far.items()}
    sizes = {size: len(errors) for size, errors in rows["Muster"].items()}
    return _table(
        ["model", *(f"{size} GPUs ({runs:,} runs)" for size, runs in sizes.items())],
        [[name, *(_cell(by_size[size]) for size in sizes)] for name, by_size in rows.items()],
    )


def _losses(experiments: Mapping[str, Mapping[str, Held]]) -> str:
    rows = [
        [experiment, title, name, statistic, f"{theirs:.1f}", f"{ours:.1f}"]
        for experiment, by_model in experiments.items()
        for workload, title in WORKLOADS.items()
        for name, held in by_model.items()
        for statistic, quantile in STATISTICS.items()
        for theirs in [100 * np.quantile(held[workload], quantile)]
        for ours in [100 * np.quantile(by_model["Muster"][workload], quantile)]
        if theirs < ours
    ]
    ours_by_size = held_out.by_size(experiments["extrapolating"]["Muster"])
    rows += [
        [f"extrapolating, {size} GPUs", "all", name, statistic, f"{theirs:.1f}", f"{ours:.1f}"]
        for name, held in experiments["extrapolating"].items()
        for size, errors in held_out.by_size(held).items()
        for statistic, quantile in STATISTICS.items()
        for theirs in [100 * np.quantile(errors, quantile)]
        for ours in [100 * np.quantile(ours_by_size[size], quantile)]
        if theirs < ours
    ]
    return _table(["experiment", "workload", "model", "statistic", "its %", "Muster's %"], rows)


def _choice() -> Fields:
    near = {name: held_out.interpolate(form) for name, form in FORMS.items()}
    far = {name: held_out.extrapolate(form) for name, form in FORMS.items()}
    cost = {name: 100 * held_out.cost(near[name], far[name]) for name in FORMS}
    rank = sorted(cost, key=cost.__getitem__)
    used = next(name for name, form in FORMS.items() if form == MUSTER)
    labels = {name: name if name in STEPS else f"*variant:* {name}" for name in FORMS}
    chosen = held_out.choose(near, far)
    all_near = np.concatenate([c.interpolating for c in chosen.values()])
    all_far = np.concatenate([c.extrapolating for c in chosen.values()])
    networks = {title: held_out.full_fit(workload) for workload, title in WORKLOADS.items()}
    return {
        "forms": _table(
            ["form", "interpolating", "extrapolating", "cost"],
            [
                [labels[name], _cell(pooled(near[name])), _cell(pooled(far[name])), f"{cost[name]:.1f}"]
                for name in FORMS
            ],
        ),
        "rank": str(rank.index(used) + 1),
        "rank_all": str(len(rank)),
        "cost_used": f"{cost[used]:.2f}",
        "cost_first": f"{cost[rank[0]]:.2f}",
        "first": rank[0],
        "yolo_measured": _percent(near[used]["yolov3"], 0.5),
        "yolo_line": _percent(near["compute as a line"]["yolov3"], 0.5),
        "chosen": _table(
            ["workload", "form chosen from the others", "interpolating", "extrapolating"],
            [
                *([WORKLOADS[w], c.form, _cell(c.interpolating), _cell(c.extrapolating)] for w, c in chosen.items()),
                ["all", "", _cell(all_near), _cell(all_far)],
            ],
        ),
        "chosen_near": _percent(all_near, 0.5),
        "chosen_far": _percent(all_far, 0.5),
        "network": _table(
            ["workload", "two nodes", "GPUs", "fullest node", "softness g"],
            [
                [title, *(f"{c:.2f}" for c in fit.congestion.values()), f"{fit.softness:.1f}"]
                for title, fit in networks.items()
            ],
        ),
    }


def _coverage() -> Fields:
    near = {w: held_out.coverage(w, extrapolating=False) for w in WORKLOADS}
    far = {w: held_out.coverage(w, extrapolating=True) for w in WORKLOADS}
    smallest = held_out.SIZES[-1][0]
    largest = np.concatenate([c.inside[c.gpus >= smallest] for c in far.values()])
    cells = {
        w: [f"{100 * c.inside.mean():.0f} % (± {100 * np.median(c.reach):.0f} %)" for c in (near[w], far[w])]
        for w in WORKLOADS
    }
    return {
        "coverage": _table(
            ["workload", "interpolating", "extrapolating"], [[title, *cells[w]] for w, title in WORKLOADS.items()]
        ),
        "coverage_near": f"{100 * np.mean([c.inside.mean() for c in near.values()]):.0f}",
        "coverage_far": f"{100 * np.mean([c.inside.mean() for c in far.values()]):.0f}",
        "coverage_largest": f"{100 * largest.mean():.0f}",
        "largest": str(smallest),
    }


def _tensorflow() -> Fields:
    table = servers.tensorflow_runs()
    most = max(run.instances for run in table)
    large = [run for run in table if run.instances == most]
    head = ["model", "mini-batch", "workers", "servers used", "Lemma 2", "T_C ms"]
    head += ["busiest link ms", "even, own nodes ms", "lost ms", "lost %"]
    return {
        "tensorflow": _table(
            head,
            [
                [run.model, *map(str, (run.minibatch, run.instances, run.used)), f"{run.needed:.2f}"]
                + [_milliseconds(t) for t in (run.compute, run.exchange, run.relieved, run.lost)]
                + [f"{100 * run.lost_share:.1f}"]
                for run in table
            ],
        ),
        "tf_instances": str(most),
        "tf_runs": str(len(table)),
        "tf_beyond": str(sum(run.exchange > run.window for run in table)),
        **_range("tf_ratio", [run.used / run.needed for run in large], 1),
        **_range("tf_lost", [100 * run.lost_share for run in large], 1),
        **_range("tf_exposed", [100 * run.lost / run.exchange for run in large], 0),
        **_range("tf_relieved", [100 * run.relieved / run.exchange for run in large], 0),
    }


def _tensors() -> Fields:
    table = servers.imbalances()
    stuck = [model for model, row in table.items() if row["largest first"].enough is None]
    robin = {model: row["round robin (TensorFlow)"].penalty for model, row in table.items()}
    worst = max(robin, key=robin.__getitem__)
    return {
        "tensors": _table(
            ["model", *servers.PLACEMENTS],
            [[model, *(f"{i.enough or '-'} ({i.penalty:.2f})" for i in row.values())] for model, row in table.items()],
        ),
        "asked": str(servers.ASKED),
        "most": str(servers.MOST),
        "stuck": ", ".join(stuck[:-1]) + " and " + stuck[-1],
        "worst": worst,
        "worst_penalty": f"{robin[worst]:.1f}",
        "blocks_more": str(max((row["blocks (Paddle)"].enough or 0) - servers.ASKED for row in table.values())),
    }


def _shaped() -> Fields:
    table = servers.shaped_runs()
    hard = np.array([abs(run.maximum / run.measured - 1) for run in table])
    soft = np.array([abs(run.soft / run.measured - 1) for run in table])
    return {
        "shaped": _table(
            ["workers' links", "servers", "measured ms", "maximum ms", "soft maximum ms"],
            [
                [run.linked, str(run.servers), *map(_milliseconds, (run.measured, run.maximum, run.soft))]
                for run in table
            ],
        ),
        "shaped_max": _percent(hard, 0.5),
        "shaped_max_worst": _percent(hard, 1),
        "shaped_soft": _percent(soft, 0.5),
        "shaped_soft_worst": _percent(soft, 1),
    }


def _errors(held: Mapping[str, Held]) -> str:
    rows = [[name, *(_cell(e[w]) for w in WORKLOADS), f"**{_cell(pooled(e))}**"] for name, e in held.items()]
    return _table(["model", *WORKLOADS.values(), "all"], rows)


def _pool(held: Mapping[str, Held]) -> dict[str, Errors]:
    return {name: pooled(errors) for name, errors in held.items()}


def _cell(errors: Errors) -> str:
    return f"{_percent(errors, 0.5)} / {_percent(errors, 0.9)}"


def _percent(errors: Errors, quantile: float) -> str:
    return f"{100 * float(np.quantile(errors, quantile)):.1f}"


def _median(held: Held) -> float:
    return 100 * float(np.median(pooled(held)))


def _met(held: Held) -> str:
    return "met" if _median(held) <= GOAL else "missed"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}"


def _range(name: str, values: Sequence[float], digits: int) -> Fields:
    return {f"{name}_low": f"{min(values):.{digits}f}", f"{name}_high": f"{max(values):.{digits}f}"}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
