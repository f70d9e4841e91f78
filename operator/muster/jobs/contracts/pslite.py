"""ps-lite, under MXNet and BytePS: DMLC_*, and one scheduler at which all meet."""

from muster.jobs.members import Cluster, Member
from muster.jobs.model import Role

_BIG_ARRAY_ELEMENTS = 1_000_000
"""MXNet's own default, stated because the plan's placement of tensors on servers relies on it."""


def _environment(member: Member, cluster: Cluster) -> dict[str, str]:
    """None without a scheduler: a process alone meets nobody. The counts are equal on all members; only a worker has
    an id.
    """
    if cluster.scheduler is None or member.role not in (Role.SCHEDULER, Role.SERVER, Role.WORKER):
        return {}
    host, port = cluster.scheduler.rsplit(":", 1)
    env = {
        "DMLC_ROLE": str(member.role),
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": port,
        "DMLC_NUM_WORKER": str(len(cluster.workers)),
        "DMLC_NUM_SERVER": str(len(cluster.servers)),
    }
    return env | {"DMLC_WORKER_ID": str(member.index)} if member.role == Role.WORKER else env


def mxnet(member: Member, cluster: Cluster) -> dict[str, str]:
    """MXNet's kvstore."""
    env = _environment(member, cluster)
    return env and env | {"MXNET_KVSTORE_BIGARRAY_BOUND": str(_BIG_ARRAY_ELEMENTS)}


def byteps(member: Member, cluster: Cluster) -> dict[str, str]:
    """BytePS, which starts one process a GPU; where there is one GPU at most, that process is rank 0."""
    env = _environment(member, cluster)
    if not env or member.role != Role.WORKER:
        return env
    processes = max(1, cluster.gpus_per_worker)
    return env | {"BYTEPS_LOCAL_SIZE": str(processes)} | ({"BYTEPS_LOCAL_RANK": "0"} if processes == 1 else {})
