"""A trial without a usable result says why, and what would help."""

import pytest
from muster_profiler.failures import why
from muster_profiler.points import point
from profiler.canned import outcome, result


def crashed(message, kind="RuntimeError", status=1):
    return outcome(result(ended="crashed", cycles=[], error={"type": kind, "message": message}), status=status)


def ended(fetches, steps):
    seen = {"fetches": fetches, "steps": steps, "backwards": steps}
    return outcome(result(ended="early", cycles=[], seen=seen))


def said(tail, status=1):
    return outcome(status=status, tail=tail)


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [
        (crashed("CUDA out of memory. Tried to allocate 2.00 GiB", "OutOfMemoryError"), "OutOfMemory", "2.00 GiB"),
        (crashed("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "OutOfMemory", "CUDNN"),
        (crashed("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), "OutOfMemory", "CUBLAS"),
        (crashed("DefaultCPUAllocator: can't allocate memory: you tried"), "OutOfMemory", "you tried"),
        (said("terminate called after throwing 'std::bad_alloc'", status=134), "OutOfMemory", "bad_alloc"),
        (outcome(result(final=False, cycles=[]), status=-9), "OutOfMemory", "SIGKILL"),
        (said("Killed", status=137), "OutOfMemory", "SIGKILL"),
        (outcome(result(final=False), status=-9, over_limit=True), "OutOfMemory", "3 %"),
        (crashed("DataLoader worker (pid 7) is killed by signal: Bus error."), "SharedMemory", "/dev/shm"),
        (said("socket.gaierror: [Errno -3] Temporary failure in name resolution"), "NetworkNeeded", "volume"),
        (said("ModuleNotFoundError: No module named 'apex'"), "MissingModule", "'apex': install it"),
        (crashed("bad shape", "ValueError"), "ScriptFailed", "ValueError: bad shape"),
        (said("usage: train.py\ntrain.py: error: unrecognized arguments: --x", 2), "ScriptFailed", "unrecognized"),
        (outcome(status=-9, timed_out=True, seconds=60.0), "DeadlineExceeded", "first iteration when its 60 s"),
        (outcome(result(final=False, cycles=[], iterations=3), timed_out=True), "DeadlineExceeded", "after 3 iter"),
        (outcome(), "NoFramework", "PYTHONPATH"),
        (ended(0, 0), "NoIterations", "entry package.module:function"),
        (ended(81, 0), "NoIterations", "entry package.module:function"),
        (ended(2, 1), "NoIterations", "after 2 batches, 1"),
        (crashed("KeyError: 'x'", "ProfilerFault", 0), "ProfilerFault", "not the script"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_a_trial_failed(outcome, reason, words):
    found = why(outcome)

    assert found.reason == reason
    assert words in found.message
    assert len(found.message) < 800
    assert point(32, outcome)[0] == {"miniBatch": 32, "fits": False, "problem": found.message}


def test_a_trial_killed_by_its_deadline_keeps_what_it_had_measured():
    found, failure = point(32, outcome(result(final=False, ended=None), status=-9, timed_out=True))

    assert failure is None
    assert found["fits"]
    assert found["computeTime"]["cycles"] == 15


def test_an_allocator_that_ran_out_of_memory_in_silence_is_told():
    swallowed = result(memory={"forwardBackwardBytes": 1, "outOfMemory": 2})

    assert point(32, outcome(swallowed))[1] is not None
