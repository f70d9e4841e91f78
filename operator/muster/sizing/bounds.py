"""How many workers may be had at most: the user's maximum, the cluster's GPUs, and at least one sample for each GPU."""

from dataclasses import dataclass

from muster.api.inventory import Inventory
from muster.sizing import text
from muster.sizing.request import Infeasible, Limits


@dataclass(frozen=True)
class Cap:
    """The most workers, the reason, and the bound in words (the end of a sentence)."""

    workers: int
    reason: str
    message: str


def inventory_cap(limits: Limits, inventory: Inventory | None) -> Cap | None:
    """The workers that the cluster's GPUs are enough for; None where GPUs are no bound."""
    if inventory is None or not limits.uses_gpus:
        return None
    each = limits.gpus_per_worker
    workers = sum(node.gpus // each for node in inventory.nodes)
    message = f"the cluster has {inventory.gpus}"
    if inventory.gpu_quota is not None and inventory.gpu_quota // each < workers:
        workers, message = inventory.gpu_quota // each, f"the namespace's quota leaves {inventory.gpu_quota}"
    elif not workers and inventory.gpus:
        message += f", but no node has {each}"
    elif workers * each < inventory.gpus:
        message += f", which hold {text.count(workers, 'worker')} of {each} on one node each"
    return Cap(workers, "Inventory", message)


def fewest_nodes(limits: Limits, inventory: Inventory | None, workers: int) -> int | None:
    """The fewest nodes whose GPUs hold so many workers; None where GPUs are no bound."""
    if inventory_cap(limits, inventory) is None or inventory is None:
        return None
    left = workers
    for used, gpus in enumerate(sorted((node.gpus for node in inventory.nodes), reverse=True), start=1):
        left -= gpus // limits.gpus_per_worker
        if left <= 0:
            return used
    return None


def cap(limits: Limits, inventory: Inventory | None, global_batch: int | None) -> Cap:
    """The tightest bound. `global_batch`: samples that all GPUs share out, None where each GPU has its own batch.

    Raises:
        Infeasible: not even one worker fits.
    """
    each = limits.gpus_per_worker
    caps = [Cap(limits.max_workers, "MaxReplicas", f"worker.maxReplicas is {limits.max_workers}")]
    if (available := inventory_cap(limits, inventory)) is not None:
        caps.append(available)
    if global_batch is not None:
        caps.append(
            Cap(
                global_batch // each,
                "MiniBatch",
                f"{text.count(global_batch, 'sample')} to share out, at least 1 a GPU",
            )
        )
    tightest = min(caps, key=lambda bound: bound.workers)
    if tightest.workers < 1:
        reason = "InsufficientGPUs" if tightest.reason == "Inventory" else "NotEnoughSamples"
        raise Infeasible(reason, f"One worker needs {text.count(each, 'GPU')}: {tightest.message}.")
    return tightest
