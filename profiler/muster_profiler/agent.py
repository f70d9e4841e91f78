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
from typing import Any, Callable, Iterator

from muster_profiler.clock import Clock
from muster_profiler.frameworks import Framework, Source
from muster_profiler.trial import CONVOLUTIONS, FROZEN, MEMORY, NATURAL, RESIDENT, STOP, WARM, Settings, write_result

CACHED_BATCHES = 8
CACHED_BYTES = 128 << 20
WINDOW = 6
MOST_DROPPED = 16


class Stop(SystemExit):
    """Ends the script. A SystemExit: status 0, no traceback, and `except Exception` lets it pass."""


class Agent:
    """One process's part of a trial. Told of events by the framework, in the thread that trains."""

    def __init__(self, framework: Framework, settings: Settings) -> None:
        self.framework = framework
        self.settings = settings
        self.clock = Clock(framework.optimizers_exist, settings.declared)
        self.thread: int | None = None
        self.plan = self._plan()
        self.mode, self.block, self.remaining = WARM, 0, 3
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
        self.cache: dict[int, list[Any]] = {}
        self.cached_bytes = 0
        self.turn = 0
        self.memory: dict[str, int] = {}
        self.parameters: dict[str, Any] | None = None
        self.source: Source | None = None
        self.samples: int | None = None
        self.upcoming: list[tuple[int, str, int]] = []
        self.published = 0
        self.depth = 0
        self.fetching = False
        self.step_mark: Any = None
        self.error: dict[str, str] | None = None
        self.stopped = False
        self.convolutions: dict[str, Any] | None = None
        self.watch: Any = None
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
        if self.mode in (FROZEN, RESIDENT) and self.cache.get(source.key):
            began = time.perf_counter_ns()
            kept = self.cache[source.key]
            self.turn += 1
            source.repeated += 1
            batch = self.framework.again(kept[self.turn % len(kept)], self.mode == RESIDENT)
            self.own += time.perf_counter_ns() - began
            return batch
        if self.drain:
            self._drain(source, produce)
        began = time.perf_counter_ns()
        batch = produce()
        if self.mode == WARM and self.begin is not None and self.settings.steps:
            self.waits.append((time.perf_counter_ns() - began) / 1e9)
            self._keep(source, batch)
        return batch

    def _drain(self, source: Source, produce: Callable[[], Any]) -> None:
        """Throw away what workers loaded ahead while the loader was frozen, if before it they could not keep up: else
        the script would live on a store that it never has."""
        self.drain = False
        waited, iteration = statistics.median(self.waits[-WINDOW:] or [0.0]), statistics.median(self._recent(WINDOW))
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
        if self.mode == MEMORY:
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
            self.mode = WARM
            self.error = {"type": "ProfilerFault", "message": "%s: %s" % (type(error).__name__, error)}
            print("muster-profile: a fault of the profiler: %s" % self.error["message"], file=sys.stderr)

    def _turn_over(self) -> None:
        end = self.framework.mark()
        if self.begin is None:
            self.first = time.monotonic()
            self.memory["startUpBytes"] = self.framework.peak()
            self.framework.restart_peak()
        else:
            kept = self.in_block >= self.dropped
            self.cycles.append((self.mode, self.block, kept, self.begin, end, self.own, self.clock.fetches))
            if self.mode == NATURAL and kept:
                self.collates.append(self.collate)
            if self.mode == MEMORY:
                self._phase("optimizerStepBytes")
            self.iterations += 1
            self.in_block += 1
            self.remaining -= 1
            if self.iterations == 2:
                self.parameters = self.framework.parameters()
                if self.settings.switch:
                    self.framework.switch(self.settings.switch)  # once more: now there are parameters to convert
        self._lead() if self.framework.rank() == 0 else self._follow()
        for start, mode, dropped in self.upcoming:
            if start == self.iterations:
                self._enter(mode, dropped)
        self.clock.restart()
        self.own = self.collate = 0
        self.step_mark = None
        self.begin = self.framework.mark()

    def _lead(self) -> None:
        """Decide the next block; where others train along, two iterations ahead, so that all of them see it in time:
        none can finish an iteration before the leader has begun it."""
        if self.remaining > (2 if self.framework.world() > 1 else 0):
            return
        start = self.iterations + max(0, self.remaining)
        mode, cycles, dropped = next(self.plan, (STOP, 0, 0))
        self.remaining = max(0, self.remaining) + cycles
        self.upcoming.append((start, mode, dropped))
        if self.framework.world() > 1:
            with open(os.path.join(self.settings.directory, "schedule"), "a") as file:
                file.write("%d %s %d\n" % (start, mode, dropped))

    def _follow(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.settings.directory, "schedule")) as file:
            file.seek(self.published)
            lines = file.read()
            lines = lines[: lines.rfind("\n") + 1]
            self.published += len(lines)
            for line in lines.splitlines():
                start, mode, dropped = line.split()
                self.upcoming.append((int(start), mode, int(dropped)))

    def _enter(self, mode: str, dropped: int) -> None:
        self.drain = mode == NATURAL and self.mode in (FROZEN, RESIDENT) and self._prefetched() > 0
        if self.watch is not None:
            self.convolutions = self.framework.convolutions(self.watch, self.settings.convolution_seconds)
            self.watch = None
        if self.mode == MEMORY:  # what comes after it is none of the script's own need
            self.memory.update(self.framework.memory_facts())
        if mode == RESIDENT and not self._put_on_device():
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
                self.cache.clear()
            self.framework.restart_peak()
        self._write(ended=None)

    def _put_on_device(self) -> bool:
        """All kept batches, so that copying one is not timed when its turn comes. False if they do not fit."""
        try:
            for kept in (each for batches in self.cache.values() for each in batches):
                self.framework.again(kept, True)
        except Exception:  # noqa: BLE001  all but the copy's time is known by then
            return False
        return True

    # ---- the leader's plan: (mode, iterations, how many of them to drop first)

    def _plan(self) -> Iterator[tuple[str, int, int]]:
        yield from self._warm_up()
        if self.settings.convolution_seconds:
            yield CONVOLUTIONS, 1, 0
            return
        if self.settings.steps:
            yield from self._timed_pairs(NATURAL, FROZEN, self.settings.steps)
        if self.settings.memory_steps:
            yield MEMORY, self.settings.memory_steps, 0
        if self.settings.steps and self.framework.resident_differs() and self.cache:
            yield from self._timed_pairs(FROZEN, RESIDENT, 15)

    def _warm_up(self) -> Iterator[tuple[str, int, int]]:
        """Until three windows in a row agree within 5 %, or for two fifths of the time. A draining prefetch queue looks
        steady, so what can lie in it is skipped first."""
        settings = self.settings
        least = settings.warmup_steps - self.iterations
        if not settings.settle:
            yield WARM, max(1, least), 0
            return
        yield WARM, max(self._prefetched() + 2, least), 0
        medians: list[float] = []
        while self._elapsed() < 0.4 * settings.seconds:
            yield WARM, WINDOW, 0
            medians.append(statistics.median(self._recent(WINDOW)))
            last = medians[-3:]
            enough = self._elapsed() >= min(5.0 if self.framework.resident_differs() else 1.0, 0.3 * settings.seconds)
            if len(last) == 3 and max(last) <= 1.05 * min(last) and enough:
                return

    def _timed_pairs(self, one: str, other: str, steps: int) -> Iterator[tuple[str, int, int]]:
        """Blocks of both kinds in turn, at least two of each, within the time. After a switch, iterations that still
        live on batches loaded ahead are dropped."""
        dropped = min(max(1, self._prefetched()), MOST_DROPPED)
        block = max(self.settings.block, dropped)
        left = max(0.0, self.settings.seconds - self._elapsed())
        affordable = int(left / (6 * max(1e-6, statistics.median(self._recent(WINDOW)))))
        block = min(block, max(2, affordable - dropped))
        needed, most = (max(2, -(-count // block)) for count in (steps, max(steps, self.settings.most_steps)))
        for pair in range(most):
            late = self._elapsed() > self.settings.seconds
            if (pair >= 2 and late) or (pair >= needed and self._settled(one) and self._settled(other)):
                return
            yield one, dropped + block, dropped
            if self.cache:
                yield other, dropped + block, dropped

    def _settled(self, mode: str) -> bool:
        """Whether the mean of the blocks' medians is known to about 1 % (one standard error)."""
        blocks: dict[int, list[float]] = {}
        for cycle in self.cycles:
            if cycle[0] == mode and cycle[2]:
                blocks.setdefault(cycle[1], []).append(self.framework.host_seconds(cycle[3], cycle[4]))
        medians = [statistics.median(block) for block in blocks.values()]
        if len(medians) < 2:
            return True
        return bool(statistics.stdev(medians) <= 0.01 * len(medians) ** 0.5 * statistics.mean(medians))

    def _elapsed(self) -> float:
        return time.monotonic() - (self.first or time.monotonic())

    def _recent(self, count: int) -> list[float]:
        return [self.framework.host_seconds(begin, end) for _, _, _, begin, end, _, _ in self.cycles[-count:]]

    def _prefetched(self) -> int:
        return self.source.prefetched if self.source else 0

    # ---- what is learnt on the way

    def _keep(self, source: Source, batch: Any) -> None:
        batches = self.cache.setdefault(source.key, [])
        if len(batches) >= CACHED_BATCHES or (batches and self.cached_bytes > CACHED_BYTES):
            return
        began = time.perf_counter_ns()
        with contextlib.suppress(Exception):  # a batch of a kind that cannot be copied: then nothing is frozen
            kept = self.framework.keep(batch)
            self.cached_bytes += self.framework.size(kept)
            self.samples = self.samples or self.framework.samples(kept)
            batches.append(kept)
        self.own += time.perf_counter_ns() - began

    def _phase(self, name: str) -> None:
        self.memory[name] = max(self.memory.get(name, 0), self.framework.peak())
        self.framework.restart_peak()

    # ---- the result

    def _write(self, ended: str | None) -> None:
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
                "rank": framework.rank(),
                "iterations": self.iterations,
                "fetches": self.clock.total_fetches,
                "clock": self.clock.kind,
                "seen": self.clock.seen(),
                "framework": {"name": framework.name, "version": framework.version},
                "device": framework.device(),
                "parameters": self.parameters,
                "cycles": cycles,
                "frozen": bool(self.cache) or any(mode == FROZEN for mode, *_ in self.cycles),
                "loaderBatchSize": self.source.batch_size if self.source else None,
                "loaderWorkers": self.source.workers if self.source else 0,
                "samples": self.samples,
                "collateNanoseconds": self.collates if not self._prefetched() else [],
                "updateNanoseconds": [framework.nanoseconds(a, b, 0) for a, b in self.updates] if whole else [],
                "memory": dict(framework.memory_facts(), **self.memory),
                "convolutional": framework.convolutional(),
                "convolutions": self.convolutions,
                "environment": framework.environment(),
                "warnings": framework.warnings(),
                "error": self.error,
            },
        )

    def failed(self, error: BaseException) -> None:
        """The script is about to end by this error."""
        self.error = {"type": type(error).__name__, "message": str(error)[:2000]}

    def script_ended(self) -> None:
        """Called when the process exits. What goes wrong with batches on the device, which the script did not expect
        there, is no fault of the script's: all else is known by then."""
        if self.mode == RESIDENT and not self.stopped:
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
