"""PyTorch: `env://` for a plain script, PET_* for torchrun, which then tells its own processes."""

from muster.jobs.members import Cluster, Member
from muster.jobs.model import Role

_MIB = 2**20


def environment(member: Member, cluster: Cluster) -> dict[str, str]:
    """WORLD_SIZE counts processes, one a GPU. RANK is that of the pod's first process. Servers are outside of the
    process group, and are told only where it meets.
    """
    host, port = cluster.workers[0].rsplit(":", 1)
    env = {"MASTER_ADDR": host, "MASTER_PORT": port}
    if member.role != Role.WORKER:
        return env
    processes = max(1, cluster.gpus_per_worker)
    return env | {
        "WORLD_SIZE": str(len(cluster.workers) * processes),
        "RANK": str(member.index * processes),
        "PET_NNODES": str(len(cluster.workers)),
        "PET_NPROC_PER_NODE": str(processes),
        "PET_NODE_RANK": str(member.index),
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": port,
    }


def workspace(limit_bytes: int) -> dict[str, str]:
    """cuDNN's cap, of the whole process, in MiB: with cudnn.benchmark only algorithms below it are chosen."""
    return {"CUDNN_CONV_WSCAP_DBG": str(limit_bytes // _MIB)}
