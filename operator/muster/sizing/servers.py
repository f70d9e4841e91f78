"""Lemma 2: how many parameter servers (Zou et al. 2017, arXiv 1709.06622), with what the bare formula leaves out.

    N_ps >= 2 S_p N_w / (B_ps T_C)

is the fewest servers whose traffic hides behind compute. Its extensions here, by their numbers in the list of rules:
asymmetric and duplex links (2), the worker's own link, which no number of servers relieves (3), real tensors (4), GPUs
behind one NIC (5), latency a message (6), and the servers' memory (7). The window that traffic can hide in (8) is the
caller's: see `overlap`; so is strong scaling (10): the caller passes the window at its number of workers.
"""

from dataclasses import dataclass

from muster.sizing.placement import Shards
from muster.sizing.rounding import ceil


@dataclass(frozen=True)
class Links:
    """Effective bandwidths in bytes per second; `duplex`: push and pull run at once, on both kinds of node."""

    server_in: float
    server_out: float
    worker_in: float
    worker_out: float
    duplex: bool = False
    server_memory: float | None = None
    """Bytes per second of a server's memory; None: not a bound."""
    memory_passes: float = 3.0
    """Times that an update moves each byte through the server's memory; about 3 for SGD."""

    @property
    def worker(self) -> float:
        """The slower direction of a worker's link."""
        return min(self.worker_in, self.worker_out)

    @classmethod
    def equal(cls, server: float, worker: float, *, duplex: bool = False) -> "Links":
        """The same bandwidth in both directions."""
        return cls(server, server, worker, worker, duplex=duplex)


@dataclass(frozen=True)
class Traffic:
    """What each worker sends and receives in one iteration. A worker is one NIC."""

    push_bytes: float
    pull_bytes: float
    messages: int = 1
    latency: float = 0.0
    """Seconds a message."""

    @property
    def message_seconds(self) -> float:
        """Latency is not divided by more servers: it comes off the window first (rule 6)."""
        return self.messages * self.latency


def nics(workers: int, gpus_per_worker: int, *, local_aggregation: bool) -> int:
    """N_w: GPUs that aggregate locally before they send are one worker, others each their own (rule 5)."""
    return workers if local_aggregation else workers * gpus_per_worker


def single_server_seconds(traffic: Traffic, links: Links, workers: int) -> float:
    """One server's time for the traffic of all workers (rules 1, 2 and 7)."""
    push, pull = traffic.push_bytes / links.server_in, traffic.pull_bytes / links.server_out
    update = links.memory_passes * traffic.push_bytes / links.server_memory if links.server_memory else 0.0
    return workers * ((max(push, pull) if links.duplex else push + pull) + update)


def worker_seconds(traffic: Traffic, links: Links) -> float:
    """A worker's own link: the floor of every exchange, whatever the number of servers (rule 3)."""
    push, pull = traffic.push_bytes / links.worker_out, traffic.pull_bytes / links.worker_in
    return max(push, pull) if links.duplex else push + pull


def lemma(traffic: Traffic, links: Links, workers: int, window: float) -> float:
    """N_ps as a real number: servers that the traffic asks for, evenly spread, to hide in `window` seconds.

    Inf where latency alone fills the window.
    """
    left = window - traffic.message_seconds
    return single_server_seconds(traffic, links, workers) / left if left > 0 else float("inf")


def fewest(traffic: Traffic, links: Links, workers: int, window: float) -> int | None:
    """Lemma 2 alone, for evenly spread parameters: 0 for one worker, None where no number of servers hides the traffic.

    The workers' own links bind where their time exceeds the window (rule 3).
    """
    if workers <= 1:
        return 0
    needed = lemma(traffic, links, workers, window)
    if needed == float("inf") or ceil(worker_seconds(traffic, links) / (window - traffic.message_seconds)) > 1:
        return None
    return max(1, ceil(needed))


@dataclass(frozen=True)
class Choice:
    """How many servers, and what decided it.

    `needed` is Lemma 2's real number. `bound` is Bandwidth or OneWorker where the traffic hides; else MaxReplicas,
    WorkerLink, Placement, Latency or NoOverlap, and `count` is the fewest servers that expose as little as can be.
    """

    count: int
    needed: float
    bound: str


def exchange_seconds(traffic: Traffic, links: Links, shards: Shards, workers: int, servers: int) -> float:
    """One iteration's exchange: the longer of the fullest server's time and the worker's own, and the latency."""
    if workers <= 1 or servers < 1:
        return 0.0
    server = single_server_seconds(traffic, links, workers) * shards.fullest(servers)
    return max(server, worker_seconds(traffic, links)) + traffic.message_seconds


def choose(traffic: Traffic, links: Links, shards: Shards, workers: int, window: float, most: int) -> Choice:
    """The fewest servers, `most` at the most, whose traffic hides in `window` seconds, or else exposes the least."""
    if workers <= 1:
        return Choice(0, 0.0, "OneWorker")
    needed = lemma(traffic, links, workers, window)
    left = window - traffic.message_seconds
    floor_seconds = worker_seconds(traffic, links)
    # Below the workers' own time a server cannot help: from there on the goal is not to be the slower one.
    useful = max(left, floor_seconds)
    alone = single_server_seconds(traffic, links, workers)
    count = shards.first(alone / useful, most) if useful > 0 else 1
    if left <= 0:
        return Choice(count, needed, "Latency" if window > 0 else "NoOverlap")
    if ceil(shards.fullest(count) * alone / useful) > 1:
        return Choice(count, needed, "Placement" if ceil(alone / useful) <= most else "MaxReplicas")
    return Choice(count, needed, "WorkerLink" if ceil(floor_seconds / left) > 1 else "Bandwidth")
