"""One token bucket for all writes: whatever happens to a thousand jobs, the API server sees a bounded stream."""

import asyncio
from collections.abc import Callable


class TokenBucket:
    """`rate` writes a second, `burst` at once. `pause` obeys a server that asks to be left alone."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] | None = None) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock or asyncio.get_running_loop().time
        self._tokens = float(burst)
        self._at = self._clock()

    def pause(self, seconds: float) -> None:
        """Let nothing pass for so long; a longer pause that already runs stays."""
        self._at = max(self._at, self._clock() + seconds)
        self._tokens = min(self._tokens, 1.0)

    def reserve(self) -> float:
        """Take a token; returns the seconds to wait before it may be used."""
        now = self._clock()
        if now > self._at:
            self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._rate)
            self._at = now
        self._tokens -= 1
        return max(0.0, self._at - now) + max(0.0, -self._tokens / self._rate)

    async def take(self) -> None:
        """Wait for one's turn."""
        if (wait := self.reserve()) > 0:
            await asyncio.sleep(wait)
