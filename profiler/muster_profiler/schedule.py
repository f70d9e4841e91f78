"""When each stage of a trial begins: decided by the rank that leads, and seen in time by those that follow."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

from muster_profiler.trial import STOP

FIRST = 3
"""Iterations before the first stage."""


class Schedule:
    """The stages by the iteration that they begin with."""

    def __init__(self, directory: str, stages: Iterator[tuple[str, int, int]]) -> None:
        self.path = os.path.join(directory, "schedule")
        self.stages = stages
        self.rank, self.world = 0, 1
        self.until = FIRST
        """The iteration with which the stages known so far are over."""
        self.upcoming: list[tuple[int, str, int]] = []
        self.read = 0

    def beginning(self, iteration: int) -> list[tuple[str, int]]:
        """Mode and iterations to drop of each stage that begins with this iteration."""
        self._lead(iteration) if self.rank == 0 else self._follow()
        return [(mode, dropped) for start, mode, dropped in self.upcoming if start == iteration]

    def _lead(self, iteration: int) -> None:
        """Decide the next stage; where others train along, two iterations ahead, so that all of them see it in time:
        none can finish an iteration before the leader has begun it."""
        if self.until - iteration > (2 if self.world > 1 else 0):
            return
        start = max(iteration, self.until)
        mode, cycles, dropped = next(self.stages, (STOP, 0, 0))
        self.until = start + cycles
        self.upcoming.append((start, mode, dropped))
        if self.world > 1:
            with open(self.path, "a") as file:
                file.write("%d %s %d\n" % (start, mode, dropped))

    def _follow(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(self.path) as file:
            file.seek(self.read)
            lines = file.read()
            lines = lines[: lines.rfind("\n") + 1]
            self.read += len(lines)
            for line in lines.splitlines():
                start, mode, dropped = line.split()
                self.upcoming.append((int(start), mode, int(dropped)))
