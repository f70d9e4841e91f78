import asyncio
from collections import Counter

import pytest
from muster.cluster.workqueue import WorkQueue


async def run_until_quiet(queue: WorkQueue[str], reconcile, workers: int = 3, quiet: float = 0.05) -> None:
    tasks = [asyncio.create_task(queue.work(reconcile)) for _ in range(workers)]
    await asyncio.sleep(quiet)
    queue.stop()
    await asyncio.gather(*tasks)


async def test_a_key_added_many_times_is_reconciled_once():
    queue, seen = WorkQueue(), Counter()

    async def reconcile(key):
        seen[key] += 1

    for _ in range(5):
        queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    await run_until_quiet(queue, reconcile)
    assert seen == {"a": 1, "b": 1}


@pytest.mark.scenario("D5")
async def test_a_key_is_never_reconciled_twice_at_once_and_again_when_added_meanwhile():
    queue, running, most, runs = WorkQueue(), 0, 0, 0

    async def reconcile(key):
        nonlocal running, most, runs
        running, runs = running + 1, runs + 1
        most = max(most, running)
        if runs < 4:
            queue.add(key)
        await asyncio.sleep(0)
        running -= 1

    queue.add("a")
    await run_until_quiet(queue, reconcile)
    assert (most, runs) == (1, 4)


async def test_different_keys_run_at_once():
    queue, all_there = WorkQueue(), asyncio.Barrier(3)

    async def reconcile(key):
        await all_there.wait()

    for key in "abc":
        queue.add(key)
    await run_until_quiet(queue, reconcile, workers=3)
    assert len(queue) == 0


async def test_a_delayed_key_comes_at_its_earliest_time():
    queue, seen = WorkQueue(), []

    async def reconcile(key):
        seen.append(key)

    queue.add_after("late", 3600)
    queue.add_after("soon", 3600)
    queue.add_after("soon", 0.01)
    await run_until_quiet(queue, reconcile)
    assert seen == ["soon"]


async def test_a_forgotten_key_does_not_come():
    queue, seen = WorkQueue(), []

    async def reconcile(key):
        seen.append(key)

    queue.add_after("a", 0.01)
    queue.forget("a")
    await run_until_quiet(queue, reconcile)
    assert seen == []


async def test_backoff_doubles_a_key_is_bounded_and_ends_with_success():
    queue: WorkQueue[str] = WorkQueue(base_seconds=1, max_seconds=8)
    waits = [queue.retry("a") for _ in range(6)]
    for wait, expected in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert expected * 0.75 <= wait <= expected * 1.25
    assert queue.retry("b") <= 1.25
    queue.succeeded("a")
    assert queue.retry("a") <= 1.25


async def test_a_server_that_asks_for_more_time_gets_it():
    queue: WorkQueue[str] = WorkQueue(base_seconds=0.001)
    assert queue.retry("a", at_least=7) == 7


async def test_a_wait_that_is_bounded_for_its_reason_stays_below():
    queue: WorkQueue[str] = WorkQueue(base_seconds=1)
    assert max(queue.retry("a", at_most=15) for _ in range(10)) == 15


async def test_a_thousand_failures_do_not_overflow():
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(2000):
        wait = queue.retry("a")
    assert wait <= 300 * 1.25


async def test_a_worker_that_is_stopped_ends_after_the_key_it_has():
    queue, seen = WorkQueue(), []

    async def reconcile(key):
        queue.stop()
        await asyncio.sleep(0.01)
        seen.append(key)

    queue.add("a")
    queue.add("b")
    await queue.work(reconcile)
    assert seen == ["a"]


async def test_an_error_that_gets_out_of_a_reconcile_ends_the_worker_so_that_it_is_noticed():
    queue = WorkQueue()

    async def reconcile(key):
        raise RuntimeError("out")

    queue.add("a")
    with pytest.raises(RuntimeError):
        await queue.work(reconcile)
