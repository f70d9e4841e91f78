"""The core inside the script's process: finds the script's iterations, leads them through warming up, timed blocks and
memory, and ends the script once enough is known.

An iteration is what lies between two batch fetches with at least one optimiser step in between: with gradient
accumulation it spans several fetches, with several optimisers several steps. `Clock` knows the fallbacks.

T_C and T_O come from *frozen-loader differencing*: short blocks of the script as it is alternate with blocks in which
its loader hands out batches that it handed out before. The second kind costs compute alone; the difference is the
overhead, including what loader workers steal from the compute, which no measurement of waiting sees. Blocks alternate
because a machine drifts.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import threading
import time
from typing import Any, Callable

from muster_profiler.clock import DECLARED, FETCH, FETCH_BACKWARD, Clock
from muster_profiler.estimate import Estimate
from muster_profiler.frameworks import Framework, Source
from muster_profiler.repeats import Repeats
from muster_profiler.schedule import Schedule
from muster_profiler.stages import WINDOW, stages
from muster_profiler.trial import (
    CONVOLUTIONS,
    ESTIMATE,
    FROZEN,
    MEMORY,
    NATURAL,
    RESIDENT,
    STOP,
    WARM,
    Settings,
    write_result,
)


class Stop(SystemExit):
    """Ends the script. A SystemExit: status 0, no traceback, and `except Exception` lets it pass."""


class Agent:
    """One process's part of a trial. Told of events by the framework, in the thread that trains."""

    def __init__(self, framework: Framework, settings: Settings) -> None:
        self.framework = framework
        self.settings = settings
        self.clock = Clock(framework.optimizers_exist, settings.declared)
        self.thread: int | None = None
        self.schedule = Schedule(settings.directory, stages(self))
        self.mode, self.block = WARM, 0
        self.iterations = 0
        self.cycles: list[tuple[str, int, bool, Any, Any, int, int]] = []
        self.in_block = 0
        self.dropped = 0
        self.begin: Any = None
        self.first: float | None = None
        self.own = 0
        self.waits: list[float] = []
        self.drain = False
        self.collate, self.updates = 0, []  # type: int, list[tuple[Any, Any]]
        self.collates: list[int] = []
        self.repeats = Repeats(framework)
        self.memory: dict[str, int] = {}
        self.parameters: dict[str, Any] | None = None
        self.source: Source | None = None
        self.depth = 0
        self.fetching = False
        self.step_mark: Any = None
        self.error: dict[str, str] | None = None
        self.stopped = False
        self.convolutions: dict[str, Any] | None = None
        self.watch: Any = None
        self.estimate: Estimate | None = None
        if settings.switch:
            framework.switch(settings.switch)

    # ---- events

    def fetch(self, source: Source, produce: Callable[[], Any]) -> Any:
        if self.source is None or source.workers > self.source.workers:
            self.source = source
        if self.fetching or not self._trains_here():  # by a loader, or a thread that loads ahead: tells of no iteration
            return produce()
        self.fetching = True
        try:
            return self._fetch(source, produce)
        finally:
            self.fetching = False

    def _fetch(self, source: Source, produce: Callable[[], Any]) -> Any:
        self.depth = 0  # a step that failed tells of no end
        if self.clock.fetched():
            self._boundary()
        if source.repeated and source.length is not None and source.position >= source.length:
            raise StopIteration
        if self.estimate:
            return self._pretended(source, produce)
        if self.mode in (FROZEN, RESIDENT) and self.repeats.of(source):
            began = time.perf_counter_ns()
            batch = self.repeats.again(source, self.mode == RESIDENT)
            self.own += time.perf_counter_ns() - began
            return batch
        if self.drain:
            self._drain(source, produce)
        began = time.perf_counter_ns()
        batch = produce()
        if self.mode == WARM and self.begin is not None and self.settings.steps:
            fetched = time.perf_counter_ns()
            self.waits.append((fetched - began) / 1e9)
            self.repeats.keep(source, batch)
            self.own += time.perf_counter_ns() - fetched
        return batch

    def _pretended(self, source: Source, produce: Callable[[], Any]) -> Any:
        assert self.estimate is not None
        if self.estimate.over():
            self._enter(STOP, 0)
        outline = self.repeats.outlines.get(source.key)
        if outline is None:  # an evaluation's, for example
            return produce()
        source.repeated += 1
        return self.estimate.batch(outline)

    def _drain(self, source: Source, produce: Callable[[], Any]) -> None:
        """Throw away what workers loaded ahead while the loader was frozen, if before it they could not keep up: else
        the script would live on a store that it never has."""
        self.drain = False
        waited, iteration = statistics.median(self.waits[-WINDOW:] or [0.0]), statistics.median(self.recent(WINDOW))
        if waited > 0.05 * iteration:
            for _ in range(source.prefetched):
                produce()

    def collated(self, nanoseconds: int) -> None:
        self.collate += nanoseconds

    def step_begin(self, optimizer: object) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        if self.clock.stepped(optimizer) and self._trains_here(claim=True):
            self._boundary()
        if self.estimate:
            self.estimate.phase("forwardBackwardBytes")
        elif self.mode == MEMORY:
            self._phase("forwardBackwardBytes")
        elif self.mode == FROZEN:
            self.step_mark = self.framework.mark()

    def step_end(self, closure: bool) -> None:
        self.depth = max(0, self.depth - 1)
        if self.depth or self.stopped:
            return
        if self.mode == FROZEN and self.step_mark is not None and not closure:
            self.updates.append((self.step_mark, self.framework.mark()))
        elif self.mode == MEMORY and closure:
            self.memory.pop("forwardBackwardBytes", None)
        elif self.estimate and closure:
            self.estimate.phases.pop("forwardBackwardBytes", None)

    def backward(self) -> None:
        if self._trains_here(claim=True) and self.clock.went_backward():
            self._boundary()

    def _trains_here(self, claim: bool = False) -> bool:
        """Whether this is the thread that trains: the first that went backward or stepped."""
        if self.stopped:  # the script swallowed Stop and goes on
            _leave()
        here = threading.get_ident()
        if self.thread is None and claim:
            self.thread = here
        return self.thread in (None, here)

    # ---- iterations

    def _boundary(self) -> None:
        """An iteration ends here. A fault of the profiler's own must not become the script's: it ends the profiling."""
        try:
            self._turn_over()
        except Exception as error:  # noqa: BLE001
            self.clock.stop()
            if self.estimate:  # all else is known and written
                return
            self.mode = WARM
            self.error = {"type": "ProfilerFault", "message": "%s: %s" % (type(error).__name__, error)}
            print("muster-profile: a fault of the profiler: %s" % self.error["message"], file=sys.stderr)

    def _turn_over(self) -> None:
        end = self.framework.mark()
        if self.begin is None:
            self.first = time.monotonic()
            self.schedule.rank, self.schedule.world = self.framework.rank(), self.framework.world()
            self.memory["startUpBytes"] = self.framework.peak()
            self.framework.restart_peak()
        elif self.estimate:
            self.estimate.turn_over()
            self.iterations += 1
        else:
            kept = self.in_block >= self.dropped
            self.cycles.append((self.mode, self.block, kept, self.begin, end, self.own, self.clock.fetches))
            if self.mode == NATURAL and kept:
                self.collates.append(self.collate)
            if self.mode == MEMORY:
                self._phase("optimizerStepBytes")
            self.iterations += 1
            self.in_block += 1
            if self.iterations == 2:
                self.parameters = self.framework.parameters()
                if self.settings.switch:
                    self.framework.switch(self.settings.switch)  # once more: now there are parameters to convert
        for mode, dropped in self.schedule.beginning(self.iterations):
            self._enter(mode, dropped)
        self.clock.restart()
        self.own = self.collate = 0
        self.step_mark = None
        self.begin = self.framework.mark()

    def _enter(self, mode: str, dropped: int) -> None:
        self.drain = mode == NATURAL and self.mode in (FROZEN, RESIDENT) and self.prefetched() > 0
        if self.watch is not None:
            self.convolutions = self.framework.convolutions(self.watch, self.settings.convolution_seconds)
            self.watch = None
        if self.mode == MEMORY:  # what comes after it is none of the script's own need
            self.memory.update(self.framework.memory_facts())
        if self.estimate:
            self.estimate.end()
        if mode == ESTIMATE:
            if self._pretend():
                return
            mode = STOP
        if mode == RESIDENT and not self.repeats.put_on_device():
            mode = STOP
        self.mode, self.dropped, self.in_block = mode, dropped, 0
        self.block += 1
        if mode == STOP:
            self._write(ended="stopped")
            self.stopped = True
            raise Stop(0)
        if mode == CONVOLUTIONS:
            self.watch = self.framework.watch_convolutions()
        if mode == MEMORY:
            if not self.framework.resident_differs():
                self.repeats.clear()
            self.framework.restart_peak()
        self._write(ended=None)

    def _pretend(self) -> bool:
        """Begin to estimate, if batches are what an iteration begins with, nobody trains along, and the script lets
        itself be pretended with."""
        if self.clock.kind not in (FETCH, FETCH_BACKWARD, DECLARED) or self.schedule.world > 1:
            return False
        self._write(ended="stopped", estimating=True)  # whatever comes of it, all else is known
        self.mode = ESTIMATE
        with contextlib.suppress(Exception):
            told = self.settings
            self.estimate = Estimate(self.framework.pretend, told.estimate, told.estimate_seconds, told.directory)
        return self.estimate is not None

    # ---- what the stages depend on

    def elapsed(self) -> float:
        return time.monotonic() - (self.first or time.monotonic())

    def recent(self, count: int) -> list[float]:
        return [self.framework.host_seconds(begin, end) for _, _, _, begin, end, _, _ in self.cycles[-count:]]

    def prefetched(self) -> int:
        return self.source.prefetched if self.source else 0

    def blocks(self, mode: str) -> list[list[float]]:
        blocks: dict[int, list[float]] = {}
        for cycle in self.cycles:
            if cycle[0] == mode and cycle[2]:
                blocks.setdefault(cycle[1], []).append(self.framework.host_seconds(cycle[3], cycle[4]))
        return list(blocks.values())

    def _phase(self, name: str) -> None:
        self.memory[name] = max(self.memory.get(name, 0), self.framework.peak())
        self.framework.restart_peak()

    # ---- the result

    def _write(self, ended: str | None, estimating: bool = False) -> None:
        framework = self.framework
        whole = ended is not None or self.mode in (MEMORY, RESIDENT) or not framework.resident_differs()
        cycles = [
            (mode, block, kept, max(0, framework.nanoseconds(begin, end, own)), fetches)
            for mode, block, kept, begin, end, own, fetches in (self.cycles if whole else [])
        ]
        write_result(
            self.settings.directory,
            {
                "final": ended is not None,
                "ended": ended,
                "estimating": estimating,
                "rank": framework.rank(),  # asked anew: a rank may end before its first iteration
                "iterations": self.iterations,
                "fetches": self.clock.total_fetches,
                "clock": self.clock.kind,
                "seen": self.clock.seen(),
                "framework": {"name": framework.name, "version": framework.version},
                "device": framework.device(),
                "parameters": self.parameters,
                "cycles": cycles,
                "frozen": bool(self.repeats) or any(mode == FROZEN for mode, *_ in self.cycles),
                "loaderBatchSize": self.source.batch_size if self.source else None,
                "passSamples": self.repeats.pass_samples(),
                "loaderWorkers": self.source.workers if self.source else 0,
                "prefetched": self.prefetched(),
                "samples": self.repeats.samples,
                "collateNanoseconds": self.collates if not self.prefetched() else [],
                "updateNanoseconds": [framework.nanoseconds(a, b, 0) for a, b in self.updates] if whole else [],
                "memory": dict(framework.memory_facts(), **self.memory),
                "convolutional": framework.convolutional(),
                "convolutions": self.convolutions,
                "estimates": self.estimate.found if self.estimate else [],
                "environment": framework.environment(),
                "warnings": framework.warnings(),
                "error": self.error,
            },
        )

    def failed(self, error: BaseException) -> None:
        """The script is about to end by this error."""
        self.error = {"type": type(error).__name__, "message": str(error)[:2000]}

    def script_ended(self) -> None:
        """Called when the process exits. What goes wrong with batches on the device, or without data, which the script
        did not expect, is no fault of the script's: all else is known by then."""
        if self.mode in (RESIDENT, ESTIMATE) and not self.stopped:
            if self.estimate:
                self.estimate.end()
            self.error = None
            self._write(ended="stopped")
        elif not self.stopped:
            if self.parameters is None and self.clock.total_steps and self.error is None:
                self.parameters = self.framework.parameters()
            self._write(ended="crashed" if self.error else "early")


def _leave() -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)
