"""What marks the iterations of a script: the events it shows decide.

In order: fetches with an optimiser step between them; optimiser steps, where batches do not come from a loader; fetches
with a backward pass between them, where no optimiser of the framework is used; backward passes alone. With a declared
entry point nothing has to be found out: each of its batches is an iteration.
"""

from __future__ import annotations

from typing import Callable

FETCH, STEP, FETCH_BACKWARD, BACKWARD, STOPPED = "fetch", "step", "fetchBackward", "backward", "stopped"
DECLARED = "declared"

STEPS_WITHOUT_FETCH = 8
BACKWARDS_WITHOUT_STEP = 3
PATIENCE = 64
"""Backward passes to wait for the first step of an optimiser that exists (gradient accumulation)."""


class Clock:
    """Counts events; each event answers whether an iteration ends with it."""

    def __init__(self, optimizers_exist: Callable[[], bool], declared: bool) -> None:
        self.optimizers_exist = optimizers_exist
        self.kind: str | None = DECLARED if declared else None
        self.fetches = self.steps = self.backwards = 0
        self.total_fetches = self.total_steps = self.total_backwards = 0
        self.primary: int | None = None
        self.lone_steps = 0

    def restart(self) -> None:
        """An iteration begins; the event that began it already belongs to it."""
        self.fetches = int(self.kind in (FETCH, FETCH_BACKWARD, DECLARED))
        self.steps = int(self.kind == STEP)
        self.backwards = int(self.kind == BACKWARD)

    def stop(self) -> None:
        """No event ends an iteration any more."""
        self.kind = STOPPED

    def seen(self) -> dict[str, int]:
        return {"fetches": self.total_fetches, "steps": self.total_steps, "backwards": self.total_backwards}

    def fetched(self) -> bool:
        self.lone_steps = 0
        if self.kind is None and self.total_fetches:
            if self.total_steps:
                self.kind = FETCH
            elif self._never_steps():
                self.kind = FETCH_BACKWARD
        since = {FETCH: self.steps, FETCH_BACKWARD: self.backwards, DECLARED: self.fetches}
        due = since.get(self.kind or "", 0) > 0
        self.fetches += not due
        self.total_fetches += 1
        return due

    def stepped(self, optimizer: object) -> bool:
        if self.primary is None:
            self.primary = id(optimizer)
        first = id(optimizer) == self.primary
        self.lone_steps += first
        if self.kind is None and self.lone_steps > STEPS_WITHOUT_FETCH:
            self.kind = STEP
        due = self.kind == STEP and first
        self.steps += not due
        self.total_steps += 1
        return due

    def went_backward(self) -> bool:
        if self.kind is None and not self.total_fetches and self._never_steps():
            self.kind = BACKWARD
        due = self.kind == BACKWARD
        self.backwards += not due
        self.total_backwards += 1
        return due

    def _never_steps(self) -> bool:
        if self.total_steps or self.total_backwards < BACKWARDS_WITHOUT_STEP:
            return False
        return self.total_backwards >= PATIENCE or not self.optimizers_exist()
