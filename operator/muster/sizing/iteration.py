"""One iteration on any number of workers and servers: what both lemmas together predict for a mini-batch.

    iteration = compute + overhead + what the exchange leaves exposed beyond compute

How compute and overhead grow with the number of GPUs G is the scaling law:

Law            batch per GPU   global batch   compute          overhead
SHARED_BATCH   X / G           X              T_C(X / G)       T_O
SHARED_LOAD    X               G X            T_C(X)           G T_O
OWN_LOAD       X               G X            T_C(X)           T_O

The first two are the strong form of Lemma 1 (the same speed-up), the third is its weak form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from muster.sizing import servers, topology
from muster.sizing.minibatch import Candidate, ComputeCurve
from muster.sizing.placement import Shards
from muster.sizing.rounding import nearest
from muster.sizing.servers import Choice, Links, Traffic


class Law(Enum):
    """What more GPUs do to the batch and to the overhead."""

    SHARED_BATCH = auto()
    SHARED_LOAD = auto()
    OWN_LOAD = auto()


class Exchange(Enum):
    """How workers exchange gradients.

    COLOCATED: through a server on every worker's node. SPLIT: those, and as many CPU-only servers (BytePS). UNKNOWN: by
    all-reduce, over a network that nobody gave or measured, so the exchange is not counted.
    """

    SERVERS = auto()
    ALL_REDUCE = auto()
    COLOCATED = auto()
    SPLIT = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class State:
    """One iteration at one size. Times in seconds; `speedup` against one GPU at the best mini-batch."""

    workers: int
    servers: int
    gpus: int
    minibatch: int
    compute: float
    overhead: float
    exchange: float
    exposed: float
    samples_per_second: float
    speedup: float

    @property
    def iteration(self) -> float:
        """Seconds of one iteration."""
        return self.compute + self.overhead + self.exposed

    @property
    def efficiency(self) -> float:
        """The share of linear speed-up."""
        return self.speedup / self.gpus

    @property
    def unhidden(self) -> float:
        """Seconds of one iteration if the script exchanges only after compute: nothing hides."""
        return self.compute + self.overhead + self.exchange


@dataclass(frozen=True)
class Model:
    """The iteration of one candidate mini-batch. `baseline`: samples per second of one GPU at the best mini-batch."""

    candidate: Candidate
    curve: ComputeCurve
    law: Law
    exchange: Exchange
    traffic: Traffic
    links: Links
    shards: Shards
    baseline: float
    gpus_per_worker: int
    local_aggregation: bool
    most_servers: int
    fixed_servers: int | None = None
    """The user's own number of servers, at every number of workers."""
    overlap: float = 1.0
    """The share of compute that an exchange can hide behind."""

    @cached_property
    def _states(self) -> dict[tuple[int, int], State]:
        return {}

    def batch_per_gpu(self, gpus: int) -> float:
        """Samples that each of `gpus` GPUs computes, before rounding: one at least."""
        return max(1.0, self.candidate.minibatch / gpus) if self.law is Law.SHARED_BATCH else self.candidate.minibatch

    def compute(self, gpus: int) -> float:
        """Seconds of compute on each of `gpus` GPUs.

        Dividing the batch never makes a sample cheaper (Lemma 1's assumption is the best case), but where smaller
        batches were measured to be dearer a sample, their times count.
        """
        if self.law is not Law.SHARED_BATCH or gpus == 1:
            return self.candidate.compute
        share = self.batch_per_gpu(gpus)
        return max(self.candidate.compute * share / self.candidate.minibatch, self.curve.compute(share))

    def overhead(self, gpus: int) -> float:
        """Seconds of overhead, before any exchange."""
        return self.candidate.overhead * (gpus if self.law is Law.SHARED_LOAD else 1)

    def servers_for(self, workers: int) -> Choice:
        """Lemma 2 at that number of workers."""
        if self.exchange is not Exchange.SERVERS:
            return Choice(0, 0.0, "AllReduce")
        window = self.overlap * self.compute(workers * self.gpus_per_worker)
        return servers.choose(self.traffic, self.links, self.shards, self.nics(workers), window, self.most_servers)

    def best(self, workers: int) -> State:
        """With the user's own servers, else with Lemma 2's: no other number of servers makes the iteration shorter."""
        count = self.servers_for(workers).count if self.fixed_servers is None else self.fixed_servers
        return self.at(workers, count)

    def at(self, workers: int, server_count: int) -> State:
        """With any number of servers."""
        key = workers, server_count
        if key not in self._states:
            self._states[key] = self._state(workers, server_count)
        return self._states[key]

    def up_to(self, most: int) -> Iterator[State]:
        """The best state of every number of workers from 1."""
        return (self.best(workers) for workers in range(1, most + 1))

    def _state(self, workers: int, server_count: int) -> State:
        gpus = workers * self.gpus_per_worker
        compute, overhead = self.compute(gpus), self.overhead(gpus)
        exchange = self._exchange_seconds(self.nics(workers), server_count)
        exposed = max(0.0, exchange - self.overlap * compute)
        share = self.batch_per_gpu(gpus)
        throughput = share * gpus / (compute + overhead + exposed)
        return State(
            workers=workers,
            servers=server_count,
            gpus=gpus,
            minibatch=nearest(share),
            compute=compute,
            overhead=overhead,
            exchange=exchange,
            exposed=exposed,
            samples_per_second=throughput,
            speedup=throughput / self.baseline,
        )

    def nics(self, workers: int) -> int:
        """N_w of Lemma 2."""
        return servers.nics(workers, self.gpus_per_worker, local_aggregation=self.local_aggregation)

    def _exchange_seconds(self, nics: int, server_count: int) -> float:
        """As `topology` and `servers` have it for the way of exchange."""
        match self.exchange:
            case Exchange.UNKNOWN:
                return 0.0
            case Exchange.SERVERS:
                return servers.exchange_seconds(self.traffic, self.links, self.shards, nics, server_count)
            case Exchange.ALL_REDUCE:
                return topology.ring_seconds(self.traffic, self.links, nics)
            case Exchange.COLOCATED:
                moved = topology.colocated_bytes(self.traffic.push_bytes, nics, nics) if nics > 1 else 0.0
            case Exchange.SPLIT:
                moved = topology.split_bytes(self.traffic.push_bytes, nics, min(nics, server_count))
        return moved / self.links.worker + (self.traffic.message_seconds if nics > 1 else 0.0)
