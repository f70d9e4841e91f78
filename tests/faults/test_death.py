"""The operator is killed before and after each of its API writes in turn, in the whole life of a job with a restart.

A real API server; a life for each death, several lives at once, each in a namespace and with an operator of its own.
"""

import asyncio
import secrets
from dataclasses import dataclass

import pytest
from support.lives import SERVERS, WORKERS, Life, Lives, training_job
from support.proxy import Call, Drop

_AT_ONCE = 6
MEMBERS = [f"job-server-{index}" for index in range(SERVERS)] + [f"job-worker-{index}" for index in range(WORKERS)]
PODS = sorted([("job-profiler", 1), *((name, attempt) for name in MEMBERS for attempt in (1, 2))])


@dataclass
class Death:
    """One run of the table."""

    number: int
    when: str
    write: str = "(not reached)"
    pods: int = 0
    twice: int = 0
    profiles: int = 0
    starts: int = 0
    restarts: int = 0
    outcome: str = "not Complete"

    @property
    def good(self) -> bool:
        return (self.outcome, self.twice, self.profiles, self.restarts) == ("Complete", 0, 1, 1)


@pytest.mark.scenario("C5", "D3")
async def test_killed_before_and_after_each_write_it_ends_complete_with_no_pod_and_no_profile_twice(lives, capsys):
    reference = await lives(f"death-0-{secrets.token_hex(3)}")
    await reference.create(training_job("job"))
    status = await reference.until_over()
    assert status["restarts"] == 1
    assert reference.pods_created() == PODS
    writes = len(reference.proxy.writes)
    await lives.release(reference)

    gate = asyncio.Semaphore(_AT_ONCE)
    deaths = [Death(number, when) for number in range(1, writes + 1) for when in ("before", "after")]
    await asyncio.gather(*(_live_and_die(lives, death, gate) for death in deaths))
    with capsys.disabled():
        _print_table(deaths)
    bad = [death for death in deaths if not death.good]
    assert not bad, "\n".join(map(str, bad))


async def _live_and_die(lives: Lives, death: Death, gate: asyncio.Semaphore) -> None:
    async with gate:
        life = await lives(f"death-{death.number}-{death.when}-{secrets.token_hex(3)}", start=False)
        _arm(life, death)
        life.tasks.append(asyncio.create_task(life.operator.keep_alive()))
        await life.create(training_job("job"))
        try:
            status = await life.until_over()
            death.outcome, death.restarts = "Complete", status["restarts"]
        except pytest.fail.Exception as error:
            death.outcome = str(error)
        finally:
            created = life.pods_created()
            death.pods, death.twice = len(created), len(created) - len(set(created))
            death.profiles = sum(name == "job-profiler" for name, _ in created)
            death.starts = life.operator.starts
            await lives.release(life)


def _arm(life: Life, death: Death) -> None:
    async def kill(call: Call) -> None:
        if call.number == death.number:
            death.write = call.what
            life.operator.kill()
            raise Drop

    if death.when == "before":
        life.proxy.before = kill
    else:
        life.proxy.after = kill


def _print_table(deaths: list[Death]) -> None:
    print(f"\n{'write':>5} {'killed':7} {'which':45} {'pods':>4} {'twice':>5} {'profiles':>8} {'starts':>6}  outcome")
    for each in deaths:
        row = f"{each.number:>5} {each.when:7} {each.write:45} {each.pods:>4} {each.twice:>5} {each.profiles:>8}"
        print(f"{row} {each.starts:>6}  {each.outcome[:40]}")
