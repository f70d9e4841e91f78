from muster.cluster.throttle import TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_at_once_and_the_rest_at_the_rate():
    bucket = TokenBucket(rate=10, burst=3, clock=Clock())
    waits = [round(bucket.reserve(), 3) for _ in range(6)]
    assert waits == [0, 0, 0, 0.1, 0.2, 0.3]


def test_tokens_come_back_with_time_and_never_above_the_burst():
    clock = Clock()
    bucket = TokenBucket(rate=8, burst=3, clock=clock)
    for _ in range(3):
        bucket.reserve()
    clock.now += 0.125
    assert bucket.reserve() == 0
    assert bucket.reserve() > 0
    clock.now += 1000
    assert [bucket.reserve() == 0 for _ in range(4)] == [True, True, True, False]


def test_after_a_pause_nothing_passes_and_then_not_all_at_once():
    clock = Clock()
    bucket = TokenBucket(rate=10, burst=100, clock=clock)
    bucket.pause(5)
    waits = [round(bucket.reserve(), 3) for _ in range(3)]
    assert waits == [5, 5.1, 5.2]


def test_a_shorter_pause_does_not_end_a_longer_one():
    clock = Clock()
    bucket = TokenBucket(rate=10, burst=100, clock=clock)
    bucket.pause(5)
    bucket.pause(1)
    assert bucket.reserve() == 5
