"""The operator as a process of its own, and what it and the kernel tell of it."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import psutil
from muster_dev.api_server import LocalControlPlane
from prometheus_client.parser import text_string_to_metric_families

METRICS, HEALTH = 18080, 18081
_QUIET_SECONDS = 3.0
_QUIET_SHARE = 0.02  # of a core


class Operator:
    """Runs in the block, which begins when it is ready."""

    def __init__(self, plane: LocalControlPlane, **settings: object) -> None:
        given = {"kubeconfig": plane.kubeconfig, "metrics_port": METRICS, "health_port": HEALTH, "log_level": "warning"}
        self._environment = os.environ | {
            f"MUSTER_{name.upper()}": str(value) for name, value in (given | settings).items()
        }
        self._begun = 0.0
        self.start_seconds = 0.0

    async def __aenter__(self) -> "Operator":
        self._begun = time.monotonic()
        command = [sys.executable, "-m", "muster.cli", "operator"]
        self._process = await asyncio.create_subprocess_exec(*command, env=self._environment)
        while not await self._get(f"http://127.0.0.1:{HEALTH}/readyz"):
            if self._process.returncode is not None:
                sys.exit("the operator ended")
            await asyncio.sleep(0.05)
        self.start_seconds = self.age
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()  # which it must bear at any time
        await self._process.wait()

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._begun

    @property
    def memory_mib(self) -> float:
        return float(psutil.Process(self._process.pid).memory_info().rss) / 2**20

    @property
    def peak_mib(self) -> float:
        """The most memory that it has had so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(float(line.split()[1]) / 2**10 for line in status.splitlines() if line.startswith("VmHWM"))

    @property
    def cpu_seconds(self) -> float:
        return cpu_seconds(psutil.Process(self._process.pid))

    async def quiet(self) -> float:
        """Wait until it has nothing to do any more; returns its age at that moment."""
        while True:
            before, at = self.cpu_seconds, self.age
            await asyncio.sleep(_QUIET_SECONDS)
            if self.cpu_seconds - before < _QUIET_SHARE * _QUIET_SECONDS:
                return at

    async def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """The samples of one metric."""
        text = await self._get(f"http://127.0.0.1:{METRICS}/metrics")
        families = text_string_to_metric_families(text)
        return [(each.labels, each.value) for family in families for each in family.samples if each.name == name]

    async def writes(self) -> dict[str, float]:
        """Requests so far that were no reads, by resource and verb."""
        found: dict[str, float] = {}
        for marks, value in await self.samples("muster_api_requests_total"):
            if marks["verb"] != "GET":
                name = f"{marks['resource']} ({marks['verb']})"
                found[name] = found.get(name, 0) + value
        return found

    async def percentiles(self, histogram: str) -> tuple[float, float, float]:
        """The 50th, 90th and 99th percentile of a histogram's observations."""
        buckets: dict[float, float] = {}
        for marks, value in await self.samples(f"{histogram}_bucket"):
            buckets[float(marks["le"])] = buckets.get(float(marks["le"]), 0) + value
        return tuple(_quantile(buckets, share) for share in (0.5, 0.9, 0.99))  # type: ignore[return-value]

    @staticmethod
    async def _get(url: str) -> str:
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return await answer.text() if answer.status == 200 else ""
        except aiohttp.ClientError:
            return ""


def cpu_seconds(process: psutil.Process) -> float:
    """What it has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _quantile(buckets: Mapping[float, float], share: float) -> float:
    """By straight lines within the buckets, as Prometheus' histogram_quantile; its last bound where it lies beyond."""
    wanted, lower, below = share * buckets.get(float("inf"), 0.0), 0.0, 0.0
    for bound, count in sorted(buckets.items()):
        if count >= wanted > below:
            return lower if bound == float("inf") else lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return 0.0
