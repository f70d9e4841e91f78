"""The batches that frozen blocks hand out again: kept while warming up, each as it was when the loader made it."""

from __future__ import annotations

import contextlib
from typing import Any

from muster_profiler.frameworks import Framework, Kept, Source

MOST_BATCHES = 8
MOST_BYTES = 128 << 20


class Repeats:
    """A few batches of each loader."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.kept: dict[int, list[Kept]] = {}
        self.bytes = 0
        self.turn = 0
        self.samples: int | None = None
        """The leading dimension of the first batch."""
        self.passes: dict[int, int | None] = {}
        """Samples of a whole pass over each loader's data, where it is known."""
        self.outlines: dict[int, tuple[Any, int]] = {}
        """Of each loader's first batch, with its own leading dimension. Its tensors have no data."""

    def __bool__(self) -> bool:
        return any(self.kept.values())

    def keep(self, source: Source, batch: Any) -> None:
        """Keep a copy, unless there are enough, or it is of a kind that cannot be copied: then nothing is frozen."""
        batches = self.kept.setdefault(source.key, [])
        before = self.passes.get(source.key, 0)
        self.passes[source.key] = None if before is None or source.samples is None else max(before, source.samples)
        if len(batches) >= MOST_BATCHES or (batches and self.bytes > MOST_BYTES):
            return
        with contextlib.suppress(Exception):
            kept = self.framework.keep(batch)
            self.bytes += kept.bytes
            batches.append(kept)
            samples = kept.samples
            self.samples = self.samples or samples
            if samples and source.key not in self.outlines:
                self.outlines[source.key] = kept.outline(), samples

    def pass_samples(self) -> int | None:
        """The most samples that a batch can have: those of a pass over the largest data set."""
        known = [samples for samples in self.passes.values() if samples is not None]
        return max(known) if known and len(known) == len(self.passes) else None

    def of(self, source: Source) -> list[Kept]:
        """What was kept of a loader; empty if nothing was."""
        return self.kept.get(source.key, [])

    def again(self, source: Source, resident: bool) -> Any:
        """The next batch to hand out again, of a loader of which some were kept."""
        batches = self.kept[source.key]
        self.turn += 1
        source.repeated += 1
        return batches[self.turn % len(batches)].again(resident)

    def put_on_device(self) -> bool:
        """All of them, so that copying one is not timed when its turn comes. False if they do not fit."""
        try:
            for kept in (each for batches in self.kept.values() for each in batches):
                kept.again(True)
        except Exception:  # noqa: BLE001  all but the copy's time is known by then
            return False
        return True

    def clear(self) -> None:
        self.kept.clear()
