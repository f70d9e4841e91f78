"""Where the members of a job find each other on one machine: each its own port of the loopback interface."""

import random
import socket

_HOST = "127.0.0.1"
_PORTS = range(20_000, 32_000)
"""Below what the kernel hands out by itself: no outgoing connection takes a port between its choice and its use."""


class AddressBook:
    """host:port of every member, chosen when first asked for and the same from then on."""

    def __init__(self) -> None:
        self._ports: dict[str, int] = {}

    def address(self, _namespace: str, _job: str, pod: str) -> str:
        """As `muster.jobs.settings.Settings.address` wants it."""
        if pod not in self._ports:
            self._ports[pod] = self._free()
        return f"{_HOST}:{self._ports[pod]}"

    def _free(self) -> int:
        for port in random.sample(_PORTS, len(_PORTS)):
            if port not in self._ports.values() and _can_bind(port):
                return port
        raise OSError(f"no free port between {_PORTS.start} and {_PORTS.stop}")


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True
