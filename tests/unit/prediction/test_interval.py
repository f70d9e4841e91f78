"""The interval holds what it promises where placements are alike, and is wider where nothing was measured."""

from random import Random

import numpy as np
import pytest
from muster.sizing.prediction import Calibrated, Configuration, Interval, Lemma2, Sample

SHAPES = [(gpus, nodes) for nodes in (1, 2, 3, 4) for gpus in range(nodes, 4 * nodes + 1) if (gpus, nodes) != (1, 1)]


def noisy(seed: int, spread: float = 0.05) -> list[Sample]:
    """A machine that obeys Lemma 2, with a placement's own luck of `spread`."""
    luck = Random(seed)
    samples = [Sample(Configuration(batch, 1), 0.002 * batch) for batch in (16, 32, 64)]
    for gpus, nodes in SHAPES:
        factor = np.exp(luck.gauss(0, spread))
        exchange = (0.1 if nodes > 1 else 0.01) * 2 * (gpus - 1) / gpus
        for batch in (16, 32, 64):
            samples.append(Sample(Configuration(batch, gpus, nodes), (0.002 * batch + exchange) * factor))
    return samples


def test_it_holds_nine_of_ten_placements_never_seen():
    samples, fresh = noisy(seed=1), noisy(seed=2)
    low, centre, high = Interval.of(Lemma2("sum"), samples).predict([s.configuration for s in fresh])
    measured = np.array([s.iteration for s in fresh])
    assert np.all((low < centre) & (centre < high))
    assert 0.8 <= np.mean((low <= measured) & (measured <= high)) <= 1


def test_it_widens_with_what_is_asked_of_it():
    interval = Interval.of(Lemma2("sum"), noisy(seed=1))
    asked = [Configuration(32, 8, 4)]
    reach = [float((high - low)[0]) for low, _, high in (interval.predict(asked, share) for share in (0.5, 0.9))]
    assert reach[0] < reach[1]


def test_it_widens_far_from_what_was_measured():
    few = [s for s in noisy(seed=3) if s.configuration.gpus <= 4]
    low, centre, high = Interval.of(Calibrated(), few).predict([Configuration(16, 4, 2), Configuration(16, 512, 128)])
    reach = (high - low) / centre
    assert reach[1] > reach[0]


def test_too_few_placements_give_none():
    samples = [s for s in noisy(seed=1) if s.configuration.gpus <= 2]
    with pytest.raises(ValueError, match="too few"):
        Interval.of(Lemma2(), samples)


def test_few_errors_say_the_same_of_both_sides_and_the_largest_counts():
    few = [
        s for s in noisy(seed=5) if (s.configuration.gpus, s.configuration.nodes) in {(1, 1), (2, 2), (4, 4), (8, 4)}
    ]
    interval = Interval.of(Lemma2("sum"), [s for s in few if s.configuration.minibatch == 32])
    assert len(interval.errors) == 3
    [low], [centre], [high] = interval.predict([Configuration(32, 4, 4)])
    assert centre / low == pytest.approx(high / centre)
    assert np.log(high / centre) >= max(np.abs(interval.errors))


def test_the_held_out_error_is_the_mean_of_what_was_missed():
    interval = Interval(Lemma2().fit(noisy(seed=1)), (), (np.log(1.25), np.log(0.5)))
    assert interval.held_out_error == pytest.approx((0.2 + 1.0) / 2)  # predicted 0.8 and 2 times what was measured


def test_placements_that_are_each_the_only_one_of_their_kind_give_none():
    shapes = {(1, 1, 0), (2, 1, 0), (2, 2, 0), (2, 2, 1)}
    samples = [Sample(Configuration(32, gpus, nodes, servers), 0.1 * gpus) for gpus, nodes, servers in shapes]
    with pytest.raises(ValueError, match="the only one of its kind"):
        Interval.of(Lemma2(), samples)
