"""Bandwidth and latency between this pod and a peer that stands for a parameter server or another worker.

`python -m muster_profiler peer --port N` serves; `measure(host, port)` drives it. Blocking sockets in threads with
1 MiB buffers reach what a training framework reaches; a pod's own /sys/class/net/*/speed is no measure of anything.
Bytes are counted where they arrive, after a ramp that lets TCP open its window and a shaper's burst run dry.

A connection carries one order (a JSON line) and then raw bytes, so a peer needs no state and takes many at once.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import threading
import time
from typing import Any, Callable

BUFFER_BYTES = 1 << 20
RAMP_SECONDS = 0.5
COUNTED_SECONDS = 0.6
STREAMS = (1, 4)
MESSAGE_BYTES = (64, 4 << 10, 64 << 10, 1 << 20)
ROUNDS = 30
LATENCY_SECONDS = 0.3
"""For the round trips of one message size."""
ORDER_BYTES = 256
LONGEST_SECONDS = 10.0
"""Of one order: a peer obeys nothing longer."""
MOST_CONNECTIONS = 32
DURATION_SECONDS = 10.0
"""What `measure` takes at most beside its patience, on a link that answers."""


class Unreachable(Exception):
    """No measurement; the message says why."""


# ---- the peer


def serve(port: int, seconds: float, host: str = "", ready: Callable[[int], None] = lambda _: None) -> None:
    """Answer orders for at most `seconds`, then return: a peer that nobody ends must not stay.

    :param ready: called with the port that is listened on (of use where 0 was asked for)
    """
    deadline = time.monotonic() + seconds
    slots = threading.BoundedSemaphore(MOST_CONNECTIONS)
    family = socket.AF_INET6 if not host and socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=64, dualstack_ipv6=family == socket.AF_INET6) as own:
        ready(own.getsockname()[1])
        while time.monotonic() < deadline:
            own.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                connection, _ = own.accept()
            except socket.timeout:
                return
            if not slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=_answer, args=(connection, slots), daemon=True).start()


def _answer(connection: socket.socket, slots: threading.BoundedSemaphore) -> None:
    with contextlib.closing(connection), contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        try:
            connection.settimeout(LONGEST_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            order = json.loads(_line(connection))
            if order["do"] == "receive":
                _send_line(connection, _receive(connection, RAMP_SECONDS))
            elif order["do"] == "send":
                _send(connection, min(float(order["seconds"]), LONGEST_SECONDS))
            elif order["do"] == "echo":
                _echo(connection, min(int(order["bytes"]), max(MESSAGE_BYTES)))
        finally:
            slots.release()


def _echo(connection: socket.socket, size: int) -> None:
    """One byte back for each whole message, until the other side closes."""
    buffer = bytearray(size)
    while _fill(connection, buffer):
        connection.sendall(b"!")


# ---- one stream


def _send(connection: socket.socket, seconds: float) -> None:
    """As much as goes through, for so long; then say that this was all."""
    chunk = bytes(BUFFER_BYTES)
    end = time.monotonic() + seconds
    connection.settimeout(LONGEST_SECONDS)
    while time.monotonic() < end:
        connection.sendall(chunk)
    connection.shutdown(socket.SHUT_WR)


def _receive(connection: socket.socket, ramp: float) -> list[int]:
    """Until the sender says that this was all: bytes that came after the ramp, and in how many nanoseconds."""
    buffer = bytearray(BUFFER_BYTES)
    start = time.perf_counter_ns() + int(ramp * 1e9)
    counted, first, last = 0, 0, 0
    while True:
        count = connection.recv_into(buffer)
        now = time.perf_counter_ns()
        if not count:
            return [counted, max(0, last - first)]
        if now >= start:
            # The first read only starts the clock: what it brought had come before.
            counted += count if first else 0
            first = first or now
            last = now


def _fill(connection: socket.socket, buffer: bytearray) -> bool:
    view = memoryview(buffer)
    while view:
        count = connection.recv_into(view)
        if not count:
            return False
        view = view[count:]
    return True


def _line(connection: socket.socket) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < ORDER_BYTES:
        byte = connection.recv(1)
        if not byte:
            break
        line += byte
    return bytes(line)


def _send_line(connection: socket.socket, content: Any) -> None:
    connection.sendall(json.dumps(content).encode() + b"\n")


# ---- the measuring side


def measure(address: str, patience: float) -> dict[str, Any]:
    """The report's `network`. Takes under 10 seconds once the peer answers.

    :param address: host:port of the peer
    :param patience: seconds to wait for the peer to be there
    :raises Unreachable: it was not there in time, or went away
    """
    host, _, port = address.rpartition(":")
    peer = (host.strip("[]"), int(port))
    _wait_for(peer, patience)
    try:
        rates = [_rates(peer, streams) for streams in STREAMS]
        latencies = [{"bytes": size, "nanoseconds": _latency(peer, size)} for size in MESSAGE_BYTES]
    except (OSError, ValueError) as error:
        raise Unreachable("the peer at %s went away while it was measured: %s" % (address, error)) from error
    return {
        "rates": rates,
        "fanInBytesPerSecond": max(rate["upBytesPerSecond"] for rate in rates),
        "latencyNanoseconds": latencies[0]["nanoseconds"],
        "latencies": latencies,
    }


def _wait_for(peer: tuple[str, int], patience: float) -> None:
    """Until the peer answers an echo: a connection alone proves nothing behind a proxy."""
    end = time.monotonic() + patience
    while True:
        try:
            _latency(peer, MESSAGE_BYTES[0], rounds=1, timeout=2.0)
            return
        except (OSError, ValueError) as error:
            if time.monotonic() >= end:
                text = "no peer answered at %s:%d within %.0f s: %s" % (*peer, patience, error)
                raise Unreachable(text) from error
        time.sleep(min(0.5, max(0.0, end - time.monotonic())))


def _rates(peer: tuple[str, int], streams: int) -> dict[str, int]:
    up, down = ["up"] * streams, ["down"] * streams
    return {
        "streams": streams,
        "upBytesPerSecond": _together(peer, up),
        "downBytesPerSecond": _together(peer, down),
        "bothBytesPerSecond": _together(peer, up + down),
    }


def _together(peer: tuple[str, int], directions: list[str]) -> int:
    """Bytes per second of all streams together, each in its direction.

    :raises OSError: a stream broke, or brought nothing
    """
    found: list[list[int] | OSError | ValueError | None] = [None] * len(directions)

    def run(place: int, direction: str) -> None:
        try:
            found[place] = _up(peer) if direction == "up" else _down(peer)
        except (OSError, ValueError) as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(directions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LONGEST_SECONDS)
    rate = 0.0
    for each in found:
        if not isinstance(each, list):
            raise each if isinstance(each, OSError) else OSError("a stream brought no count (%s)" % (each,))
        count, nanoseconds = each
        rate += count * 1e9 / nanoseconds if nanoseconds else 0.0
    if rate < 1:
        raise OSError("nothing came through")
    return round(rate)


def _ordered(peer: tuple[str, int], order: dict[str, Any], timeout: float = LONGEST_SECONDS) -> socket.socket:
    connection = socket.create_connection(peer, timeout=timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _send_line(connection, order)
    return connection


def _up(peer: tuple[str, int]) -> list[int]:
    with contextlib.closing(_ordered(peer, {"do": "receive"})) as connection:
        _send(connection, RAMP_SECONDS + COUNTED_SECONDS)
        count, nanoseconds = json.loads(_line(connection))
        return [int(count), int(nanoseconds)]


def _down(peer: tuple[str, int]) -> list[int]:
    order = {"do": "send", "seconds": RAMP_SECONDS + COUNTED_SECONDS}
    with contextlib.closing(_ordered(peer, order)) as connection:
        return _receive(connection, RAMP_SECONDS)


def _latency(peer: tuple[str, int], size: int, rounds: int = ROUNDS, timeout: float = LONGEST_SECONDS) -> int:
    """Half the median time from a message's first byte to the answer, in nanoseconds.

    The message's own transfer is in it: for large messages it tells the bandwidth more than the latency.
    """
    message, answer = bytes(size), bytearray(1)
    times: list[int] = []
    end = time.monotonic() + LATENCY_SECONDS
    with contextlib.closing(_ordered(peer, {"do": "echo", "bytes": size}, timeout)) as connection:
        while len(times) < rounds and (not times or time.monotonic() < end):
            began = time.perf_counter_ns()
            connection.sendall(message)
            if not _fill(connection, answer):
                raise OSError("the peer closed the connection")
            times.append(time.perf_counter_ns() - began)
    return round(statistics.median(times) / 2)
