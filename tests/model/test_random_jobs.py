"""Whatever a spec says, it is read or refused in plain words, and the job comes to an end that its conditions tell.

`RANDOM_JOBS=10000 pytest tests/model/test_random_jobs.py` draws more of them.
"""

import os
from typing import Any

import pytest
from model.whole_life import whole_life
from model.world import report
from muster.api.report import Report
from muster.cluster.views import packed_job
from support.job_constraints import job
from support.random_jobs import random_job

COUNT, CHUNK = int(os.environ.get("RANDOM_JOBS", "3000")), 250


def extreme(nanoseconds: int, size: int, rate: int) -> Report:
    """A report whose numbers are all at one end of their range."""
    known: dict[str, Any] = report(1, 64).dump()
    timing = dict.fromkeys(known["points"][0]["computeTime"], nanoseconds) | {"cycles": 1}
    measured = {"computeTime": timing, "overheadTime": timing, "memory": {"peakBytes": size}}
    tensor = {"name": "w", "elements": size // 1000, "bytes": size}
    network = {"rates": [{"streams": 1, "upBytesPerSecond": rate, "downBytesPerSecond": rate}]}
    return Report.model_validate(
        known
        | {
            "points": [point | measured for point in known["points"]],
            "device": known["device"] | {"memoryBytes": size},
            "parameters": {"bytes": size, "exchangedBytes": size, "tensors": [tensor]},
            "network": network,
        }
    )


REPORTS = [
    *(report(), report(), report(1), report(32, failing=(64,)), report(failing=(32, 64))),
    *(extreme(0, 0, 1), extreme(10**15, 10**16, 10**14), extreme(0, 10**16, 1), extreme(10**15, 10**16, 1)),
]


@pytest.mark.scenario("C11", "D1")
@pytest.mark.parametrize("first", range(0, COUNT, CHUNK))
def test_c11_any_job_is_read_or_refused_in_plain_words_and_ends(first: int) -> None:
    for seed in range(first, min(first + CHUNK, COUNT)):
        raw = random_job(seed)
        raw["metadata"] |= {"namespace": "team", "uid": "u"}
        try:
            job = packed_job(raw).unpack()
            if job.spec is None:
                plain(job.spec_error)
            whole_life(job, REPORTS[seed % len(REPORTS)])
        except BaseException as error:
            error.add_note(f"random_job({seed})")
            raise


def test_a_prediction_that_64_bits_do_not_hold_is_cut_to_them() -> None:
    """By a report that anybody may write, into a config map."""
    raw = job({"worker": {"replicas": 2}}, "job")
    raw["metadata"] |= {"namespace": "team", "uid": "u"}
    world = whole_life(packed_job(raw).unpack(), extreme(10**15, 10**16, 1))
    assert world.status.plan is not None
    assert world.status.plan.predicted.iteration_time_microseconds == 2**63 - 1


def plain(message: str | None) -> None:
    """A user can read it: where, what is wrong, and nothing of how Muster is made."""
    assert message
    assert message.startswith("spec")
    assert ": " in message
    assert len(message) <= 1024
    for word in ("instance of", "Value error", "pydantic", "Traceback", "function-", "union["):
        assert word not in message
