"""Paddle's parameter servers and collective training: TRAINING_ROLE and PADDLE_*."""

from muster.jobs.members import Cluster, Member
from muster.jobs.model import Role


def environment(member: Member, cluster: Cluster) -> dict[str, str]:
    """On a server, POD_IP and PADDLE_PORT joined are its own entry of the list of servers: that is how it finds its
    place.
    """
    env = {
        "PADDLE_TRAINERS_NUM": str(len(cluster.workers)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(cluster.workers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(cluster.servers),
    }
    if member.role == Role.SERVER:
        host, port = cluster.servers[member.index].rsplit(":", 1)
        return env | {"TRAINING_ROLE": "PSERVER", "POD_IP": host, "PADDLE_PORT": port}
    return env | {
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINER_ID": str(member.index),
        "PADDLE_CURRENT_ENDPOINT": cluster.workers[member.index],
    }
