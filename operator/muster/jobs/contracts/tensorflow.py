"""TensorFlow: TF_CONFIG."""

import json

from muster.jobs.members import Cluster, Member
from muster.jobs.model import Role

_MIB = 2**20
_TASK = {Role.WORKER: "worker", Role.CHIEF: "chief", Role.SERVER: "ps", Role.EVALUATOR: "evaluator"}
REPLACEABLE = frozenset({Role.WORKER, Role.EVALUATOR})
"""With parameter servers a coordinator survives the loss of a worker, and nobody waits for the evaluator. A lost
server loses its variables.
"""


def environment(member: Member, cluster: Cluster) -> dict[str, str]:
    """None for a process alone. The evaluator is in nobody's cluster but its own: with it in theirs, the strategy
    would wait for it.
    """
    if cluster.single and member.role == Role.WORKER:
        return {}
    places = {"chief": [cluster.chief] if cluster.chief else [], "worker": [*cluster.workers], "ps": [*cluster.servers]}
    if member.role == Role.EVALUATOR:
        places["evaluator"] = [cluster.evaluator] if cluster.evaluator else []
    config = {
        "cluster": {task: hosts for task, hosts in places.items() if hosts},
        "task": {"type": _TASK[member.role], "index": member.index},
    }
    env = {"TF_CONFIG": json.dumps(config)}
    if member.role in (Role.WORKER, Role.SERVER):
        env["GRPC_FAIL_FAST"] = "use_caller"
    return env


def workspace(limit_bytes: int) -> dict[str, str]:
    """TensorFlow's own bound of a convolution's scratch space, in MiB."""
    return {"TF_CUDNN_WORKSPACE_LIMIT_IN_MB": str(limit_bytes // _MIB)}
