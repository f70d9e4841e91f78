"""Other ways to exchange the same gradients: ring all-reduce, servers on the workers' own nodes, and BytePS's split.

Bytes are per direction and node; a link carries both directions at once.
"""

from muster.sizing.servers import Links, Traffic


def ring_bytes(parameter_bytes: float, nodes: int) -> float:
    """Ring all-reduce, or every node a worker and a server: 2 S_p (n - 1) / n."""
    return 2 * parameter_bytes * (nodes - 1) / nodes


def ring_seconds(traffic: Traffic, links: Links, nodes: int) -> float:
    """A ring all-reduce over the workers' links: it hides iff this is at most T_C."""
    if nodes <= 1:
        return 0.0
    return ring_bytes(traffic.push_bytes, nodes) / links.worker + traffic.message_seconds


def colocated_bytes(parameter_bytes: float, nodes: int, servers: int) -> float:
    """`servers` servers on as many of `nodes` worker nodes: what the busiest node moves, S_p (n + k - 2) / k."""
    if not 1 <= servers <= nodes:
        raise ValueError(f"{servers} servers on {nodes} nodes: from 1 to as many as there are nodes")
    return parameter_bytes * (nodes + servers - 2) / servers


def split_bytes(parameter_bytes: float, nodes: int, cpu_servers: int) -> float:
    """The best split over `nodes` GPU nodes that also serve and `cpu_servers` nodes that only serve (BytePS).

    2 n (n - 1) / (n^2 + k n - 2 k) of S_p: the ring's figure for k = 0, S_p for k = n.
    """
    if not 0 <= cpu_servers <= nodes:
        raise ValueError(f"{cpu_servers} servers for {nodes} nodes: from 0 to as many as there are nodes")
    if nodes == 1:
        return 0.0
    return parameter_bytes * 2 * nodes * (nodes - 1) / (nodes**2 + cpu_servers * nodes - 2 * cpu_servers)
