"""The queue between changes and reconciles: one entry a key, one reconcile a key at a time, backoff a key.

As in client-go: a key that is added while it is being worked on is worked on again afterwards; a key added twice is one
entry.
"""

import asyncio
import contextlib
import heapq
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from muster import metrics

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys whose reconcile is due, now or later. Everything runs on one event loop, so plain containers are safe."""

    def __init__(self, *, base_seconds: float = 0.2, max_seconds: float = 300.0) -> None:
        self._base = base_seconds
        self._max = max_seconds
        self._ready: deque[K] = deque()
        self._since: dict[K, float] = {}  # the keys in _ready or dirty, and since when
        self._active: set[K] = set()
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._failures: dict[K, int] = {}
        self._sequence = 0
        self._wake = asyncio.Event()
        self._stopped = False

    def add(self, key: K) -> None:
        """The key is due now."""
        if key in self._since:
            return
        self._since[key] = time.monotonic()
        if key not in self._active:
            self._push(key)

    def add_after(self, key: K, seconds: float) -> None:
        """The key is due in so many seconds, unless it is due earlier anyway."""
        due = time.monotonic() + max(0.0, seconds)
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._sequence += 1
            heapq.heappush(self._timers, (due, self._sequence, key))
            self._wake.set()

    def retry(self, key: K, *, at_least: float = 0.0, at_most: float = math.inf) -> float:
        """The key's reconcile failed: it is due after a wait that doubles each time. Returns the wait in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait: float = min(self._max, self._base * 2.0 ** min(failures - 1, 30)) * random.uniform(0.75, 1.25)
        wait = max(at_least, min(wait, at_most))
        self.add_after(key, wait)
        return wait

    def succeeded(self, key: K) -> None:
        """The key's reconcile went well: its next failure waits the shortest time again."""
        self._failures.pop(key, None)

    def forget(self, key: K) -> None:
        """The key's object is gone."""
        self._failures.pop(key, None)
        self._due.pop(key, None)

    def __len__(self) -> int:
        return len(self._ready)

    async def work(self, reconcile: Callable[[K], Awaitable[None]]) -> None:
        """Reconcile due keys one after the other, until `stop`. Run as many of these as there shall be workers."""
        while (key := await self._next()) is not None:
            self._active.add(key)
            metrics.QUEUE_WAIT.observe(time.monotonic() - self._since.pop(key))
            try:
                await reconcile(key)
            finally:
                self._active.discard(key)
                if key in self._since:  # added meanwhile
                    self._push(key)

    def stop(self) -> None:
        """Let every worker end after the key it has."""
        self._stopped = True
        self._wake.set()

    def longest_wait(self) -> float:
        """Seconds for which the key that is next has been due."""
        return time.monotonic() - self._since[self._ready[0]] if self._ready else 0.0

    def _push(self, key: K) -> None:
        self._ready.append(key)
        metrics.QUEUE_DEPTH.set(len(self._ready))
        self._wake.set()

    async def _next(self) -> K | None:
        while not self._stopped:
            self._fire_timers()
            if self._ready:
                key = self._ready.popleft()
                metrics.QUEUE_DEPTH.set(len(self._ready))
                return key
            self._wake.clear()
            timeout = self._timers[0][0] - time.monotonic() if self._timers else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
        return None

    def _fire_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            due, _, key = heapq.heappop(self._timers)
            if self._due.get(key) == due:  # not replaced by an earlier one, not forgotten
                del self._due[key]
                self.add(key)
