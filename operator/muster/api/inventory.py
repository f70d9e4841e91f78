"""What a cluster, or this machine, has to give: the bound that no plan may pass."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """One machine's allocatable resources."""

    name: str
    gpus: int
    cpu_millicores: int
    memory_bytes: int


@dataclass(frozen=True)
class Inventory:
    """The schedulable nodes, and what a namespace's quota leaves of their GPUs (None: no quota)."""

    nodes: tuple[Node, ...] = ()
    gpu_quota: int | None = None

    @property
    def gpus(self) -> int:
        """GPUs that a job of the namespace can hold at once."""
        total = sum(node.gpus for node in self.nodes)
        return total if self.gpu_quota is None else min(total, self.gpu_quota)
