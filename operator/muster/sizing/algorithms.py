"""A report's convolutions at one mini-batch: what may be spent on workspaces, and what a job can make of it.

Libraries take one workspace limit for the whole process and pick each convolution's fastest algorithm within it. So a
plan counts with the best single limit (`reachable`) and shows beside it the optimum of free choice (`optimum`).
"""

from dataclasses import dataclass, replace
from functools import cached_property

from muster.api.job import Workspace
from muster.api.report import ConvolutionLayer, Report
from muster.api.status import ConvolutionPlan, Tradeoff
from muster.sizing import convolution, text
from muster.sizing.convolution import Row, Selection
from muster.sizing.minibatch import MEMORY_MARGIN, Candidate
from muster.sizing.rounding import floor


@dataclass(frozen=True)
class Algorithms:
    """The convolutions of one mini-batch, with at most `bound` bytes for their workspaces."""

    rows: tuple[Row, ...]
    used: Selection | None
    """What the timed iterations ran with, where the report tells."""
    bound: float
    shared: bool

    @cached_property
    def leanest(self) -> Selection:
        """With as little workspace as can be."""
        return convolution.least_workspace(self.rows, shared=self.shared)

    @cached_property
    def optimum(self) -> Selection | None:
        """The 0/1 programme's answer."""
        return convolution.select(self.rows, self.bound, shared=self.shared)

    @cached_property
    def reachable(self) -> tuple[int, Selection] | None:
        """The best single limit in bytes, and the algorithms within it."""
        return convolution.one_limit(self.rows, self.bound, shared=self.shared)

    def applied_to(self, candidate: Candidate) -> Candidate:
        """The candidate with the compute time that the reachable algorithms leave."""
        if self.used is None or self.reachable is None:
            return candidate
        faster = self.reachable[1].seconds
        compute = max(faster, candidate.compute - max(0.0, self.used.seconds - faster))
        shift = candidate.compute - compute
        low, high = candidate.compute_interval
        return replace(candidate, compute=compute, compute_interval=(max(faster, low - shift), high - shift))

    def plan(self) -> ConvolutionPlan | None:
        """What stands in the status; None where no set fits."""
        if self.reachable is None or self.optimum is None:
            return None
        limit, selection = self.reachable
        reached, best = self._saved(selection.seconds), self._saved(self.optimum.seconds)
        message = (
            f"A limit of {text.size(limit)} a workspace takes {text.percent(reached)} off the convolutions' time; "
            f"{text.size(max(0.0, self.bound))} were free for workspaces"
        )
        if floor(best * 100) > floor(reached * 100):
            message += f". Free choice of each algorithm would take {text.percent(best)}, which no single limit reaches"
        if self.optimum.method == "GreedyFallback":
            message += f". The solver ran out of time; greedy is at most {text.percent(self.optimum.gap)} off"
        message += ". Drop the last, smaller batch of an epoch: it may pick algorithms that need more memory."
        return ConvolutionPlan(
            workspace_limit_bytes=limit,
            saved_percent=floor(reached * 100),
            tradeoff=[
                Tradeoff(workspace_bytes=workspace, saved_percent=floor(self._saved(seconds) * 100))
                for workspace, seconds in convolution.front(self.rows, shared=self.shared)
            ],
            message=message,
        )

    def _saved(self, seconds: float) -> float:
        return 1 - seconds / self.leanest.seconds if self.leanest.seconds else 0.0


def algorithms(report: Report, candidate: Candidate, workspace: Workspace) -> Algorithms | None:
    """The convolutions measured at the candidate's mini-batch; None where there are none, or the user has it off.

    What is free for workspaces is the device's memory less a margin and the measured peak, with the workspaces within
    that peak given back. They are at least the leanest: the measured iterations ran.
    """
    layers = [layer for layer in report.convolutions if layer.mini_batch == candidate.minibatch]
    memory = report.device.memory_bytes
    if workspace is Workspace.OFF or not layers or not memory or candidate.peak_bytes is None:
        return None
    if report.device.kind == "cpu":  # Libraries take a workspace limit for GPUs alone.
        return None
    shared = workspace is Workspace.SHARED
    rows = tuple(_row(layer) for layer in layers)
    used = _used(layers, rows, shared=shared)
    within_peak = used or convolution.least_workspace(rows, shared=shared)
    given_back = _workspace(candidate) or within_peak.workspace
    free = memory * (1 - MEMORY_MARGIN) - candidate.peak_bytes
    return Algorithms(rows, used, max(0.0, free) + given_back, shared)


def _workspace(candidate: Candidate) -> int | None:
    memory = candidate.point.memory if candidate.point else None
    return memory.workspace_bytes if memory else None


def _row(layer: ConvolutionLayer) -> Row:
    return Row(
        times=tuple(algorithm.time_nanoseconds / 1e9 for algorithm in layer.algorithms),
        workspaces=tuple(algorithm.workspace_bytes for algorithm in layer.algorithms),
        layers=layer.layers,
    )


def _used(layers: list[ConvolutionLayer], rows: tuple[Row, ...], *, shared: bool) -> Selection | None:
    chosen = []
    for layer in layers:
        names = [algorithm.name for algorithm in layer.algorithms]
        if layer.used not in names:
            return None
        chosen.append(names.index(layer.used))
    return convolution.totals(rows, chosen, shared=shared)
