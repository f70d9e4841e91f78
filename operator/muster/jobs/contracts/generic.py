"""Muster's own variables, which every pod of a job has, whatever its framework."""

from muster.api import labels
from muster.jobs.members import Cluster, Member


def environment(member: Member, cluster: Cluster, attempt: int) -> dict[str, str]:
    """Role, place, counts and addresses. The counts are those of the addresses, so that they cannot differ."""
    return {
        labels.ENV_ROLE: str(member.role),
        labels.ENV_INDEX: str(member.index),
        labels.ENV_WORKERS: str(len(cluster.workers)),
        labels.ENV_SERVERS: str(len(cluster.servers)),
        labels.ENV_WORKER_HOSTS: ",".join(cluster.workers),
        labels.ENV_SERVER_HOSTS: ",".join(cluster.servers),
        labels.ENV_ATTEMPT: str(attempt),
    }


def batch(mini_batch: int) -> dict[str, str]:
    """Samples per GPU and iteration."""
    return {labels.ENV_MINIBATCH: str(mini_batch)}


def workspace(limit_bytes: int) -> dict[str, str]:
    """The planned bound of convolution workspaces."""
    return {labels.ENV_CONVOLUTION_WORKSPACE: str(limit_bytes)}


def no_workspace(_limit_bytes: int) -> dict[str, str]:
    """No framework's own switch."""
    return {}


def nothing(_member: Member, _cluster: Cluster) -> dict[str, str]:
    """No framework, no more variables."""
    return {}
