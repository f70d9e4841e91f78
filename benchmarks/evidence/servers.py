"""Servers that were used, that the rules ask for, and what ignoring a rule costs."""

from dataclasses import dataclass

from muster.sizing.placement import (
    Placement,
    Shards,
    big_arrays_split,
    blocks,
    even,
    fixed_partitions,
    greedy,
    largest_first,
    min_max_partitions,
    partitioned,
    round_robin,
)
from muster.sizing.servers import Links, Traffic, exchange_seconds, fewest, lemma, worker_seconds
from muster.sizing.topology import colocated_bytes

from evidence.measured import Throughput, shaped_servers, tensor_sizes, tensorflow_servers

TEN_GIGABIT = 1.25e9
"""Bytes per second: the network of a p2.8xlarge."""
FP32 = 4
INSTANCE = 8
"""GPUs of a p2.8xlarge, which sum their gradients before they send them: one worker (rule 5)."""
USED = {("inception3", 64): 6, ("inception3", 32): 6, ("resnet50", 32): 4, ("resnet152", 32): 4}
"""Servers of the runs on 8 instances that had fewer than one an instance."""
TENSORS = {"inception3": "inception-v3", "resnet50": "resnet-50", "resnet152": "resnet-152"}
BACKWARD = 2 / 3
"""The part of compute that traffic can hide behind (rule 8)."""


@dataclass(frozen=True)
class Run:
    """One run with parameter servers. Seconds are of one iteration."""

    model: str
    minibatch: int
    instances: int
    used: int
    needed: float
    fewest: int | None
    compute: float
    link: float
    fullest: float
    shared: float
    relieved: float
    lost: float

    @property
    def window(self) -> float:
        """What can hide traffic."""
        return BACKWARD * self.compute

    @property
    def lost_share(self) -> float:
        """Of the throughput that as many single instances would have had."""
        return self.lost / (self.compute + self.lost)

    @property
    def exchange(self) -> float:
        """The busiest link: rules 3, 4 and 9. `relieved`: were tensors even and servers on nodes of their own."""
        return max(self.link, self.fullest, self.shared)


def tensorflow_runs() -> list[Run]:
    """Every run on more than one instance, held against the same model on one."""
    rows = tensorflow_servers()
    alone = {(row.model, row.minibatch): row.iteration for row in rows if row.gpus == INSTANCE}
    return [_run(row, alone[row.model, row.minibatch]) for row in rows if row.gpus > INSTANCE]


def _run(row: Throughput, compute: float) -> Run:
    instances = row.gpus // INSTANCE
    used = USED.get((row.model, row.minibatch), instances) if instances == INSTANCE else instances
    sizes = tensor_sizes()[TENSORS[row.model]]
    size = sum(sizes) * FP32
    traffic, links = Traffic(size, size), Links.equal(TEN_GIGABIT, TEN_GIGABIT)
    shards = Shards(sizes, round_robin)
    return Run(
        model=row.model,
        minibatch=row.minibatch,
        instances=instances,
        used=used,
        needed=lemma(traffic, links, instances, compute),
        fewest=fewest(traffic, links, instances, compute),
        compute=compute,
        link=worker_seconds(traffic, links),
        fullest=exchange_seconds(traffic, links, shards, instances, used),
        relieved=exchange_seconds(traffic, links, Shards([], even), instances, used),
        shared=2 * colocated_bytes(size, instances, used) / TEN_GIGABIT,
        lost=row.iteration - compute,
    )


ASKED = 4
"""Servers that Lemma 2 asks for: T_C is set so, for every model."""
MOST = 64
PLACEMENTS: dict[str, Placement] = {
    "even slices": even,
    "round robin (TensorFlow)": round_robin,
    "greedy (TensorFlow)": greedy,
    "largest first": largest_first,
    "fixed parts (TensorFlow)": fixed_partitions,
    "min-max parts (TensorFlow)": min_max_partitions,
    "big arrays split (MXNet)": big_arrays_split,
    "4 MB slices (BytePS)": lambda sizes, servers: partitioned(sizes, servers, 1_024_000),
    "blocks (Paddle)": blocks,
}


@dataclass(frozen=True)
class Imbalance:
    """`enough`: the first number of servers that hides what ASKED even ones hide, None if none up to MOST does.

    `penalty`: how many times longer than planned the exchange takes on the ASKED servers of the bare formula.
    """

    enough: int | None
    penalty: float


def imbalances() -> dict[str, dict[str, Imbalance]]:
    """By model and placement."""
    return {
        model: {name: _imbalance(Shards(sizes, place)) for name, place in PLACEMENTS.items()}
        for model, sizes in tensor_sizes().items()
    }


def fullest(model: str, place: Placement, most: int) -> list[float]:
    """N phi(N), the fullest server's load in even shares, for N from 1 to `most`."""
    shards = Shards(tensor_sizes()[model], place)
    return [servers * shards.fullest(servers) for servers in range(1, most + 1)]


def _imbalance(shards: Shards) -> Imbalance:
    tolerance = 1 + 1e-3
    enough = (n for n in range(ASKED, MOST + 1) if shards.fullest(n) * ASKED <= tolerance)
    return Imbalance(next(enough, None), ASKED * shards.fullest(ASKED))


@dataclass(frozen=True)
class Shaped:
    """One measured iteration with overlap, and what the rules say: the maximum, and a soft one with g = 4."""

    linked: str
    servers: int
    measured: float
    maximum: float
    soft: float


def shaped_runs() -> list[Shaped]:
    """Lemma 2 against servers whose links were held to a rate, nothing fitted."""
    compute, traffic = 0.6, Traffic(10e6, 10e6)
    runs = []
    for linked, seconds in shaped_servers().items():
        links = Links.equal(23.9e6, 23.9e6 if linked == "as servers" else float("inf"))
        for servers, measured in seconds.items():
            exchange = exchange_seconds(traffic, links, Shards([], even), 2, servers)
            soft = (compute**4 + exchange**4) ** (1 / 4)
            runs.append(Shaped(linked, servers, measured, max(compute, exchange), soft))
    return runs
