"""Each law finds again what it was made to draw, and says so where the samples cannot tell it."""

import numpy as np
import pytest
from muster.sizing.prediction import (
    Calibrated,
    Configuration,
    Lemma1,
    Lemma1OwnBatch,
    Lemma2,
    Linear,
    Network,
    Optimus,
    Pollux,
    Sample,
)

BATCHES = (16, 32, 64, 128)
SHAPES = ((1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (3, 3), (4, 4), (8, 2), (8, 4))
"""GPUs and nodes."""


def compute(batch: int) -> float:
    return 0.02 + 0.002 * batch


def law(exchange, combine) -> list[Sample]:
    """Samples of a made-up machine: `exchange` of a configuration, combined with its compute."""
    configurations = [Configuration(batch, gpus, nodes) for batch in BATCHES for gpus, nodes in SHAPES]
    return [
        Sample(c, compute(c.minibatch) if c.gpus == 1 else combine(compute(c.minibatch), exchange(c)))
        for c in configurations
    ]


def ring(c: Configuration) -> float:
    """All-reduce whose link takes 10 ms for the parameters on one node, 80 ms between nodes."""
    return (0.08 if c.nodes > 1 else 0.01) * 2 * (c.gpus - 1) / c.gpus


def error(model, samples: list[Sample], asked: list[Sample] | None = None) -> float:
    """The largest relative error of the predictions of `asked`."""
    asked = samples if asked is None else asked
    predicted = model.fit(samples).predict([s.configuration for s in asked])
    return float(np.max(np.abs(predicted / np.array([s.iteration for s in asked]) - 1)))


MACHINES = {
    "Lemma 1, own batch": (Lemma1OwnBatch(), law(lambda c: 0.05 if c.nodes > 1 else 0.01, lambda t, x: t + x)),
    "Lemma 2, sum": (Lemma2("sum"), law(ring, lambda t, x: t + x)),
    "Lemma 2, maximum": (Lemma2("max"), law(ring, max)),
    "Optimus": (Optimus(), law(lambda c: 0.01 + 0.003 * c.gpus / c.nodes + 0.001 * c.nodes, lambda t, x: t + x)),
    "Linear": (Linear(), law(lambda c: 0.004 * (c.gpus - 1) + 0.02 * (c.nodes - 1), lambda t, x: t + x)),
    "Pollux": (
        Pollux(),
        law(
            lambda c: 0.05 + 0.0005 * (c.gpus - 2) if c.nodes > 1 else 0.01,
            lambda t, x: (t**1.5 + x**1.5) ** (1 / 1.5),
        ),
    ),
    "Muster": (
        Calibrated(network=Network(deviation=10.0)),
        law(
            lambda c: ring(c) * c.gpus**0.2 * (1.6 if c.nodes == 2 else 1),
            lambda t, x: t / 3 + ((2 * t / 3) ** 4 + x**4) ** (1 / 4),
        ),
    ),
}
TOLERANCES = {"Pollux": 0.02, "Muster": 0.01, "Optimus": 0.15}
"""Pollux is drawn to the sum and Muster to no congestion; Optimus has one constant for one GPU and for more."""


@pytest.mark.parametrize("name", MACHINES)
def test_a_law_predicts_the_machine_that_obeys_it(name):
    model, samples = MACHINES[name]
    assert error(model, samples) < TOLERANCES.get(name, 1e-3)


@pytest.mark.parametrize("name", ["Lemma 2, sum", "Lemma 2, maximum", "Muster"])
def test_a_law_that_knows_the_reason_extrapolates(name):
    model, samples = MACHINES[name]
    few = [s for s in samples if s.configuration.gpus <= 4]
    many = [s for s in samples if s.configuration.gpus > 4]
    assert error(model, few, many) < TOLERANCES.get(name, 1e-3) + 0.01


def test_lemma_1_finds_the_overhead_ratio_of_a_shared_batch():
    ratio = 0.1505  # of ResNet-50, global batch 160, on one node
    alone = [Sample(Configuration(batch, 1), 0.001 * batch) for batch in (20, 40, 80, 160)]
    shared = [
        Sample(Configuration(160 // gpus, gpus), 0.16 * (1 + gpus * ratio) / (gpus * (1 + ratio))) for gpus in (2, 4)
    ]
    [predicted] = Lemma1().fit(alone + shared).predict([Configuration(20, 8)])
    assert predicted == pytest.approx(0.16 * (1 + 8 * ratio) / (8 * (1 + ratio)), rel=1e-6)


def test_servers_hide_their_traffic_up_to_the_knee_and_no_more():
    """2 workers, 10 MB, T_C 600 ms, server links of 23.9 MB/s: the knee is at 3 servers, as measured."""
    measured = {1: 1.662, 2: 0.821, 3: 0.602, 4: 0.603}
    samples = [Sample(Configuration(32, 1), 0.600)] + [
        Sample(Configuration(32, 2, nodes=2, servers=servers), seconds) for servers, seconds in measured.items()
    ]
    form = Calibrated(unhidden=0.0, congestion=(), straggling="none")
    assert error(form, samples) < 0.04
    assert error(Lemma2("max"), samples) < 0.03


def test_the_workers_own_links_are_the_floor_whatever_the_servers():
    measured = {1: 1.656, 2: 0.824, 3: 0.804, 4: 0.782}
    samples = [Sample(Configuration(32, 1), 0.600)] + [
        Sample(Configuration(32, 2, nodes=2, servers=servers), seconds) for servers, seconds in measured.items()
    ]
    fitted = Calibrated(unhidden=0.0, congestion=(), straggling="none").fit(samples)
    few, many = fitted.predict([Configuration(32, 2, nodes=2, servers=servers) for servers in (4, 40)])
    assert few == pytest.approx(many)
    assert few == pytest.approx(0.8, rel=0.05)


def test_compute_that_is_no_line_is_kept_as_measured():
    measured = {4: 0.267, 6: 0.451, 8: 0.326}  # YOLOv3 on a T4
    samples = [Sample(Configuration(batch, 1), seconds) for batch, seconds in measured.items()]
    predicted = Lemma2("sum").fit(samples).predict([s.configuration for s in samples])
    assert predicted == pytest.approx(list(measured.values()))


@pytest.mark.parametrize("batch", [128, 1024])
def test_beyond_the_largest_mini_batch_compute_goes_on_as_a_line(batch):
    samples = [Sample(Configuration(b, 1), compute(b)) for b in (8, 16, 32, 64)]
    [predicted] = Lemma2("sum").fit(samples).predict([Configuration(batch, 1)])
    assert predicted == pytest.approx(compute(batch))


def test_what_other_jobs_taught_of_the_network_replaces_what_few_samples_cannot_tell():
    _, samples = MACHINES["Muster"]
    few = [s for s in samples if s.configuration.gpus <= 2]
    far = [s for s in samples if s.configuration.gpus == 8]
    known = Network.learnt([Calibrated(network=Network(deviation=10.0)).fit(samples)])
    assert error(Calibrated(network=known), few, far) < error(Calibrated(), few, far) / 2


@pytest.mark.parametrize("model", [Lemma2(), Calibrated(), Lemma1OwnBatch(), Lemma1()])
def test_without_a_profile_there_is_no_prediction(model):
    with pytest.raises(ValueError, match="starts from the profile"):
        model.fit([Sample(Configuration(32, 2), 0.1)])


@pytest.mark.parametrize("model", [Lemma2(), Calibrated(), Pollux()])
def test_one_node_says_nothing_of_several(model):
    fitted = model.fit([s for s in MACHINES["Lemma 2, sum"][1] if s.configuration.nodes == 1])
    with pytest.raises(ValueError, match="no sample ran across nodes"):
        fitted.predict([Configuration(32, 4, nodes=2)])


def test_pollux_knows_no_servers():
    with pytest.raises(ValueError, match="no parameter servers"):
        Pollux().fit([Sample(Configuration(32, 2, nodes=2, servers=1), 0.1)])


def test_optimus_s_terms_are_not_told_apart_by_jobs_with_as_many_servers_as_workers():
    samples = [
        Sample(Configuration(batch, count, nodes=count, servers=count), 0.1 * count)
        for batch in BATCHES
        for count in (2, 3, 4, 8)
    ]
    with pytest.raises(ValueError, match=r"5 terms .* tells 3 of them apart"):
        Optimus().fit(samples)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minibatch": 32, "gpus": 2, "nodes": 3}, "every node needs at least one GPU"),
        ({"minibatch": 0, "gpus": 1}, "minibatch 0"),
        ({"minibatch": 1, "gpus": 1, "servers": -1}, "servers -1"),
    ],
)
def test_an_impossible_configuration_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Configuration(**arguments)


def test_an_iteration_cannot_wait_longer_than_it_lasts():
    with pytest.raises(ValueError, match="waits"):
        Sample(Configuration(32, 2), 0.1, exposed=0.2)
