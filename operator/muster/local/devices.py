"""What this machine has to give: its GPUs, processors and memory."""

import itertools
import os
import subprocess

from muster.api.inventory import Inventory, Node


def gpus() -> tuple[str, ...]:
    """The GPUs that processes may be given: those of CUDA_VISIBLE_DEVICES where it is set, else all of the machine."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        return tuple(itertools.takewhile(lambda name: name not in ("", "-1"), names))  # as CUDA reads it
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # no driver, no GPU
        return ()
    return tuple(listed.stdout.split())


def inventory(gpu_count: int) -> Inventory:
    """This machine as a cluster of one node."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Inventory((Node("this machine", gpu_count, (os.cpu_count() or 1) * 1000, memory),))
