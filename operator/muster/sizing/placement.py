"""How tensors are laid on parameter servers: the fullest server decides, and each framework has its own rule.

phi(N) is the share of all bytes on the fullest of N servers: 1/N at best. Whole tensors give phi >= largest/total, so
one large tensor makes further servers useless. N * phi(N) is not monotone: callers scan N upwards (Lemma 2, rule 4).
"""

from collections.abc import Callable, Sequence
from heapq import heapreplace
from itertools import accumulate

from muster.api.job import Framework
from muster.sizing.rounding import ceil

Sizes = Sequence[int]
Placement = Callable[[Sizes, int], list[int]]
"""From the tensors' sizes in the framework's order, and a number of servers, to the size on each server."""

MXNET_BIG_ARRAY = 1_000_000
"""Elements from which MXNet splits an array over all servers (MXNET_KVSTORE_BIGARRAY_BOUND)."""
MXNET_HASH = 9973
"""The prime by which ps-lite's users spread whole keys."""
BYTEPS_PARTITION = 1_024_000
"""Elements (of 4 bytes) of a BytePS partition, BYTEPS_PARTITION_BYTES."""
PADDLE_SMALLEST_BLOCK = 8192
"""Elements below which Paddle does not split a variable further (min_block_size)."""


def even(sizes: Sizes, servers: int) -> list[int]:
    """One flat buffer in equal slices: no imbalance but the remainder."""
    whole, rest = divmod(sum(sizes), servers)
    return [whole + (i < rest) for i in range(servers)]


def round_robin(sizes: Sizes, servers: int) -> list[int]:
    """TensorFlow's default: variables to servers in turn, in the order of their creation, whatever their size."""
    return [sum(sizes[i::servers]) for i in range(servers)]


def greedy(sizes: Sizes, servers: int) -> list[int]:
    """TensorFlow's GreedyLoadBalancingStrategy: each next variable to the server that holds least."""
    loads = [(0, i) for i in range(servers)]
    for size in sizes:
        load, i = loads[0]
        heapreplace(loads, (load + size, i))
    return [load for load, _ in sorted(loads, key=lambda pair: pair[1])]


def largest_first(sizes: Sizes, servers: int) -> list[int]:
    """Whole tensors as evenly as a simple rule can: the largest first, each to the server that holds least."""
    return greedy(sorted(sizes, reverse=True), servers)


def big_arrays_split(sizes: Sizes, servers: int, bound: int = MXNET_BIG_ARRAY) -> list[int]:
    """MXNet: arrays of `bound` elements or more in equal parts on all servers, the others whole by their key's hash."""
    loads = even([size for size in sizes if size >= bound], servers)
    for key, size in enumerate(sizes):
        if size < bound:
            loads[key * MXNET_HASH % servers] += size
    return loads


def partitioned(sizes: Sizes, servers: int, slice_size: int) -> list[int]:
    """BytePS: tensors cut into slices of `slice_size` at most, the slices to servers in turn."""
    return _in_turn([(size, -(-size // slice_size)) for size in sizes], servers)


def fixed_partitions(sizes: Sizes, servers: int, shards: int | None = None) -> list[int]:
    """TensorFlow with fixed_size_partitioner: every variable in `shards` parts (one a server), in turn."""
    return _in_turn([(size, shards or servers) for size in sizes], servers)


def min_max_partitions(sizes: Sizes, servers: int, smallest: int = 65_536) -> list[int]:
    """TensorFlow with min_max_variable_partitioner: up to a part a server, none below `smallest` (256 KiB of fp32)."""
    return _in_turn([(size, min(servers, size // smallest)) for size in sizes], servers)


def blocks(sizes: Sizes, servers: int) -> list[int]:
    """Paddle (slice_var_up): up to a block a server of each variable, none below PADDLE_SMALLEST_BLOCK, in turn."""
    return min_max_partitions(sizes, servers, PADDLE_SMALLEST_BLOCK)


def _in_turn(cuts: Sequence[tuple[int, int]], servers: int) -> list[int]:
    """(size, number of parts) of each tensor: equal parts, one after another, to servers in turn."""
    laps, steps, position = 0, [0] * (servers + 1), 0

    def hand_out(count: int, amount: int) -> None:
        nonlocal laps
        laps += count // servers * amount
        end = position + count % servers
        steps[position] += amount
        steps[min(end, servers)] -= amount
        if end > servers:
            steps[0] += amount
            steps[end - servers] -= amount

    for size, wanted in cuts:
        if wanted <= 1:  # whole tensors, the most of them: without the detour
            steps[position] += size
            steps[position + 1] -= size
            position = (position + 1) % servers
            continue
        whole, rest = divmod(size, wanted)
        hand_out(wanted, whole)
        hand_out(rest, 1)
        position = (position + wanted) % servers
    return [laps + load for load in accumulate(steps[:-1])]


def _byteps(sizes: Sizes, servers: int) -> list[int]:
    return partitioned(sizes, servers, BYTEPS_PARTITION)


PLACEMENTS: dict[Framework, Placement] = {
    Framework.PYTORCH: even,
    Framework.TENSORFLOW: round_robin,
    Framework.MXNET: big_arrays_split,
    Framework.BYTEPS: _byteps,
    Framework.PADDLE: blocks,
    Framework.GENERIC: even,
}
"""What each framework does unless its user configures otherwise."""


class Shards:
    """phi(N) of one model's tensors under one placement, each N computed once and only when asked for.

    `sizes` are elements (the frameworks' thresholds count elements; all are exchanged in one type). Without sizes, the
    placement is even.
    """

    def __init__(self, sizes: Sizes, place: Placement) -> None:
        self._sizes = tuple(size for size in sizes if size > 0)
        self._total = sum(self._sizes)
        self._place = place
        self._even = place is even or not self._sizes
        self._known: dict[int, float] = {}
        self._leanest: dict[int, int] = {}

    @property
    def largest_share(self) -> float:
        """The largest tensor's share of all, 0 where no tensor is known."""
        return max(self._sizes) / self._total if self._sizes else 0.0

    def fullest(self, servers: int) -> float:
        """phi(N): the share of all bytes on the fullest of `servers` servers."""
        if self._even:
            return 1 / servers
        if servers not in self._known:
            self._known[servers] = max(self._place(self._sizes, servers)) / self._total
        return self._known[servers]

    def leanest(self, most: int) -> int:
        """The fewest servers, of up to `most`, whose fullest holds least."""
        if self._even:
            return most
        if most not in self._leanest:
            self._leanest[most] = min(range(1, most + 1), key=self.fullest)
        return self._leanest[most]

    def first(self, needed: float, most: int) -> int:
        """The first N of up to `most` with phi(N) <= 1/needed, or else the leanest (rule 4)."""

        def enough(servers: int) -> bool:
            return ceil(self.fullest(servers) * needed) <= 1

        known = self._leanest.get(most)
        if ceil(needed) > most or (known is not None and not enough(known)):
            return self.leanest(most)
        return next(filter(enough, range(max(1, ceil(needed)), most + 1)), None) or self.leanest(most)
