"""The measurement of bandwidth and latency against a peer: on loopback, over a link of a set rate, and without one."""

import json
import os
import shutil
import socket
import subprocess
import threading
import uuid

import pytest
from muster.api.report import NetworkMeasurement, Report
from muster_profiler import network, process, profile, progress
from profiler.canned import outcome, result
from profiler.conftest import PROFILER, newest_only

PORT = 2222


@pytest.fixture
def peer():
    """host:port of a peer in this process."""
    port: list[int] = []
    up = threading.Event()

    def ready(number):
        port.append(number)
        up.set()

    threading.Thread(target=network.serve, args=(0, 60.0, "127.0.0.1", ready), daemon=True).start()
    assert up.wait(10)
    return f"127.0.0.1:{port[0]}"


def test_a_peer_is_measured_in_both_directions_with_one_stream_and_four(peer, monkeypatch):
    monkeypatch.setattr(network, "RAMP_SECONDS", 0.1)
    monkeypatch.setattr(network, "COUNTED_SECONDS", 0.2)

    found = NetworkMeasurement.model_validate(network.measure(peer, 5))

    assert [rate.streams for rate in found.rates] == [1, 4]
    assert all(rate.up_bytes_per_second > 10**7 and rate.down_bytes_per_second > 10**7 for rate in found.rates)
    assert found.fan_in_bytes_per_second == max(rate.up_bytes_per_second for rate in found.rates)
    assert [latency.bytes for latency in found.latencies] == list(network.MESSAGE_BYTES)
    assert found.latency_nanoseconds == found.latencies[0].nanoseconds > 0


def test_a_peer_that_never_comes_is_given_up_with_its_address():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(network.Unreachable, match=rf"no peer answered at 127.0.0.1:{port} within 0 s"):
        network.measure(f"127.0.0.1:{port}", 0)


def test_a_name_that_does_not_resolve_is_waited_for_and_given_up():
    with pytest.raises(network.Unreachable, match=r"no peer answered at peer\.invalid:2222"):
        network.measure("peer.invalid:2222", 0)


def test_a_peer_that_closes_every_connection_is_no_peer():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_all():
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=close_all, daemon=True).start()
        with pytest.raises(network.Unreachable):
            network.measure(f"127.0.0.1:{server.getsockname()[1]}", 0)


@pytest.mark.parametrize(
    "order", [b"garbage\n", b"{}\n", b'{"do": "format"}\n', b'{"do": "echo", "bytes": "x"}\n', b"x" * 999]
)
def test_a_peer_that_is_sent_garbage_goes_on_serving_others(peer, order):
    host, port = peer.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as stranger:
        stranger.sendall(order)

    assert network._latency((host, int(port)), 64) > 0


def test_a_peer_ends_by_itself():
    network.serve(0, 0.1, "127.0.0.1")


def _shaped(rate_mbit):
    """Two network namespaces with a veth pair between them, shaped in both directions; None with why not."""
    if not (shutil.which("ip") and shutil.which("tc")) or os.geteuid():
        return None, "needs root, ip and tc"
    one, two = (f"m{uuid.uuid4().hex[:8]}{side}" for side in "ab")
    shape = f"tbf rate {rate_mbit}mbit burst 64kb latency 50ms"
    for line in (
        f"ip netns add {one}",
        f"ip netns add {two}",
        f"ip link add {one} netns {one} type veth peer name {two} netns {two}",
        f"ip -n {one} addr add 10.99.0.1/24 dev {one}",
        f"ip -n {two} addr add 10.99.0.2/24 dev {two}",
        f"ip -n {one} link set {one} up",
        f"ip -n {two} link set {two} up",
        f"tc -n {one} qdisc add dev {one} root {shape}",
        f"tc -n {two} qdisc add dev {two} root {shape}",
    ):
        done = subprocess.run(line.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            _removed(one, two)
            return None, f"{line}: {done.stderr.strip()}"
    return (one, two), ""


def _removed(*names):
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


MEASURE = "import json,sys; from muster_profiler import network; print(json.dumps(network.measure(sys.argv[1], 20)))"


@newest_only
def test_a_link_of_a_set_rate_is_measured_within_ten_percent(python):
    mbit = 200
    names, why_not = _shaped(mbit)
    if names is None:
        pytest.skip(f"no network namespaces with a shaped link between them here: {why_not}")
    environment = dict(os.environ, PYTHONPATH=str(PROFILER))
    within = ["ip", "netns", "exec"]
    serving = subprocess.Popen(
        [*within, names[1], python, "-m", "muster_profiler", "peer", "--port", str(PORT)], env=environment
    )
    try:
        found = json.loads(
            subprocess.run(
                [*within, names[0], python, "-c", MEASURE, f"10.99.0.2:{PORT}"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
    finally:
        serving.terminate()
        serving.wait(10)
        _removed(*names)

    set_rate = mbit * 1e6 / 8
    for rate in found["rates"]:
        assert rate["upBytesPerSecond"] == pytest.approx(set_rate, rel=0.1)
        assert rate["downBytesPerSecond"] == pytest.approx(set_rate, rel=0.1)
        assert rate["bothBytesPerSecond"] == pytest.approx(2 * set_rate, rel=0.2), "full duplex"
    assert found["fanInBytesPerSecond"] == pytest.approx(set_rate, rel=0.1)


def profiled(monkeypatch, measure, **options):
    monkeypatch.setattr(process, "run", lambda *_: outcome(result()))
    monkeypatch.setattr(network, "measure", measure)
    return profile.Profile(["train"], {}, profile.Options(peer="peer:2222", **options), progress.none).run()


def test_the_network_is_in_the_report(monkeypatch):
    measured = {"rates": [{"streams": 1, "upBytesPerSecond": 7, "downBytesPerSecond": 8}], "fanInBytesPerSecond": 7}

    found = profiled(monkeypatch, lambda *_: measured)

    assert Report.model_validate(found).network == NetworkMeasurement.model_validate(measured)


def test_without_its_peer_a_profile_is_whole_and_says_what_is_missing(monkeypatch):
    def unreachable(address, patience):
        raise network.Unreachable(f"no peer answered at {address}")

    found = profiled(monkeypatch, unreachable)

    assert "network" not in found
    assert found["points"][0]["fits"]
    assert [w["message"] for w in found["warnings"] if w["reason"] == "NetworkNotMeasured"] == [
        "The network was not measured: no peer answered at peer:2222."
    ]


def test_near_the_deadline_the_network_is_left_out(monkeypatch):
    found = profiled(monkeypatch, lambda *_: pytest.fail("no time for it"), deadline_seconds=12)

    assert [w["reason"] for w in found["warnings"]] == ["NetworkNotMeasured"]


def test_the_wrapper_in_the_image_serves_as_a_peer():
    wrapper = PROFILER / "muster_profiler" / "inject" / "muster-profile"

    subprocess.run(["/bin/sh", str(wrapper), "--peer", "--port", "23457", "--seconds", "1"], check=True, timeout=60)
