"""The picture of a plan shows what was chosen, legibly, whatever the plan."""

from itertools import combinations

import pytest
from muster.api.job import Goal
from muster.sizing import plan
from unit.sizing.reports import efficiency, limits, point, report

pytest.importorskip("matplotlib", reason="drawing needs the extra `plot`")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from muster import plots

GIB = 1 << 30
PROFILE = report(
    point(16, 0.11, 0.012, peak=4 * GIB),
    point(32, 0.20, 0.014, peak=7 * GIB),
    point(64, 0.38, 0.019, peak=13 * GIB),
    {"miniBatch": 128, "fits": False, "problem": "out of memory"},
    parameter_bytes=102_228_128,
)
SERVERS = limits(uses_servers=True, server_bandwidth=1.25e9, worker_bandwidth=1e10)
GOALS = {
    "efficiency": efficiency(80),
    "speedup": Goal(speedup="4"),
    "deadline": Goal(deadline={"seconds": 3600, "samples": 1_500_000}),
    "cost": Goal(cost={"gpuSeconds": 12_000, "samples": 1_500_000}),
}


@pytest.mark.parametrize("wanted", [SERVERS, limits()], ids=["servers", "all-reduce"])
def test_a_plan_is_drawn_with_and_without_servers(wanted, tmp_path):
    path = tmp_path / "plan.png"
    plots.draw(PROFILE, GOALS["efficiency"], wanted, plan(PROFILE, GOALS["efficiency"], wanted, None), path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_every_panel_marks_the_chosen_number_and_names_it(goal):
    chosen = plan(PROFILE, goal, SERVERS, None)
    figure = plots.picture(plots.curves(PROFILE, goal, SERVERS, None), chosen)
    panels = [axes for axes in figure.axes if axes.get_title("left")]
    assert [axes.get_title("left") for axes in panels] == [
        f"Mini-batch: 64, {chosen.mini_batch.value} on each GPU",
        f"GPUs: {chosen.workers.value}",
        f"Servers: {chosen.servers.value}",
    ]
    for axes in panels:
        assert "chosen" in axes.get_legend_handles_labels()[1]


def test_no_two_texts_overlap():
    many = report(*(point(4 * 2**i, 0.02 * 2**i, 0.01, peak=GIB + i * GIB) for i in range(16)), memory=1 << 40)
    for profile in (PROFILE, many):
        figure = plots.picture(
            plots.curves(profile, GOALS["cost"], SERVERS, None), plan(profile, GOALS["cost"], SERVERS, None)
        )
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        boxes = [
            (label.get_text(), label.get_window_extent(renderer))
            for axes in figure.axes
            for label in [
                *axes.get_xticklabels(),
                *axes.get_yticklabels(),
                axes.xaxis.label,
                axes.yaxis.label,
                axes.title,
                *(axes.get_legend().get_texts() if axes.get_legend() else []),
            ]
            if label.get_visible() and label.get_text()
        ]
        clashes = [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other) and a != b]
        assert not clashes


def test_nothing_is_told_by_colour():
    figure = plots.picture(
        plots.curves(PROFILE, GOALS["speedup"], SERVERS, None), plan(PROFILE, GOALS["speedup"], SERVERS, None)
    )
    colours = {line.get_color() for axes in figure.axes for line in axes.get_lines()}
    assert colours <= {"k", "0.6"}
