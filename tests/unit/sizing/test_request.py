"""What a TrainingJob states becomes what a plan respects: one case for each word about the exchange."""

import pytest
from muster.api.job import TrainingJobSpec
from muster.sizing import Limits, plan
from support.jobs import job
from unit.sizing.reports import efficiency, point, report


@pytest.mark.parametrize(
    ("gpus", "network", "servers"),
    [
        (1, {}, 3),  # 2 x 100 MB x 6 workers over 10 Gbit/s take 0.96 s, behind 0.4 s of compute
        (1, {"overlap": "Full"}, 3),
        (1, {"overlap": "Backward"}, 4),  # behind 0.267 s
        (4, {"localAggregation": True}, 3),
        (4, {"localAggregation": False}, 10),  # 24 senders: 3.84 s
    ],
)
def test_servers_follow_from_what_the_job_says_of_its_exchange(gpus, network, servers):
    manifest = job("any", "true", server="true", scaling="Weak")["spec"]
    manifest["network"] = {"serverBandwidth": "10Gbit", "workerBandwidth": "100Gbit", **network}
    manifest["worker"]["replicas"] = 6
    container = manifest["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    spec = TrainingJobSpec.model_validate(manifest)
    found = plan(report(point(64, 0.4, 0.0), parameter_bytes=100_000_000), efficiency(50), Limits.of(spec), None)
    assert found.servers.value == servers


def test_an_exchange_that_hides_behind_nothing_is_paid_in_full():
    manifest = job("any", "true", server="true", scaling="Weak")["spec"]
    manifest["network"] = {"serverBandwidth": "10Gbit", "workerBandwidth": "10Gbit", "overlap": "None"}
    manifest["worker"]["replicas"] = 6
    spec = TrainingJobSpec.model_validate(manifest)
    found = plan(report(point(64, 0.4, 0.0), parameter_bytes=100_000_000), efficiency(50), Limits.of(spec), None)
    assert "Nothing hides" in found.servers.message
    assert found.predicted.iteration_time_microseconds == 560_000  # 2 x 100 MB over the worker's own 10 Gbit/s
