"""Every kind of training script: it runs as it does without the profiler, and its iterations, parameters and ending are
seen for what they are."""

from dataclasses import dataclass

import pytest

QUICK = {"warmup_steps": 6, "settle": False, "steps": 4, "block": 2, "seconds": 20}
WATCHED = {"warmup_steps": 6, "settle": False, "steps": 0, "memory_steps": 1_000_000}
"""To the script's own end, and no batch repeated."""


GPT2 = ("transformers.trainer", "transformers.models.gpt2.modeling_gpt2")


@dataclass(frozen=True)
class Case:
    """`trainable`: bytes and number of the tensors exchanged. `losses`: how many an iteration prints."""

    script: str
    trainable: tuple[int, int]
    clock: str = "fetch"
    fetches: int = 1
    frozen: bool = True
    batch: int | None = 16
    imports: tuple[str, ...] = ()
    since: tuple[int, int] = (1, 13)
    losses: int = 1


CASES = [
    Case("plain.py", (4 * (16 * 32 + 32 + 32 * 4 + 4), 4), batch=32),
    Case("workers.py", (4 * 68, 2)),
    Case("accumulation.py", (4 * 17, 2), fetches=4, batch=8),
    Case("amp_scaler.py", (4 * 17, 2)),
    Case("compiled.py", (4 * (16 * 16 + 16 + 16 + 1), 4), since=(2, 1)),
    Case("ddp.py", (4 * 17, 2)),
    Case("gan.py", (4 * (4 * 8 + 8 + 8 + 1), 4)),
    Case("lbfgs.py", (4 * 9, 2)),
    Case("in_backward.py", (4 * (8 * 8 + 8 + 8 + 1), 4), since=(2, 1)),
    Case("iterable.py", (4 * 9, 2)),
    Case("garbage.py", (4 * 9, 2)),
    Case("changes_directory.py", (4 * 9, 2)),
    Case("hand_sliced.py", (4 * 9, 2), clock="step", fetches=0, frozen=False, batch=None),
    Case("no_optimizer.py", (4 * 9, 2), clock="fetchBackward"),
    Case("by_hand.py", (0, 0), clock="backward", fetches=0, frozen=False, batch=None),
    Case("evaluates.py", (4 * 9, 2)),
    Case("two_loaders.py", (4 * 9, 2), fetches=2),
    Case("tied_and_frozen.py", (4 * (50 * 8 + 50), 2)),
    Case("changes_batches.py", (4 * 9, 2)),
    Case("variable_length.py", (4 * (16 * 8 + 2 * 24 * 8 + 2 * 24), 5)),
    Case("one_cycle.py", (4 * 9, 2)),
    Case("inherits_step.py", (4 * 9, 2)),
    Case("background_loader.py", (4 * 9, 2), clock="step", fetches=0, frozen=False),
    Case("prefetches.py", (4 * 9, 2)),
    Case("sparse.py", (4 * 800, 1)),
    Case("scheduled.py", (4 * 9, 2)),
    Case("forks.py", (4 * 9, 2)),
    Case("accelerated.py", (4 * 17, 2), fetches=2, imports=("accelerate",), losses=2),
    Case("sharded.py", (4 * (16 * 16 + 16 + 16 + 1), 4), since=(2, 6)),
    Case("fabric.py", (4 * 9, 2), imports=("lightning",)),
    Case("lightning_trainer.py", (4 * 9, 2), imports=("lightning",)),
    Case("transformers_trainer.py", (4 * 4592, 16), fetches=2, imports=GPT2, losses=2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_a_script_computes_the_same_and_is_seen_for_what_it_is(case, zygote):
    zygote.require(*case.since)

    without, watched, profiled = (
        zygote.run(case.script, settings=settings, imports=case.imports) for settings in (None, WATCHED, QUICK)
    )

    assert (without.status, watched.status) == (0, 0), without.output + watched.output
    assert watched.result["ended"] == "early"
    assert watched.losses == without.losses
    assert profiled.status == 0, profiled.output
    result = profiled.result
    assert result["ended"] == "stopped", profiled.output
    assert result["error"] is None
    first_frozen = profiled.modes.index("frozen") if case.frozen else len(profiled.modes)
    same = case.losses * (first_frozen + 1)
    assert same >= 7
    assert profiled.losses[:same] == without.losses[:same]

    assert result["clock"] == case.clock
    assert result["loaderBatchSize"] == case.batch
    assert set(profiled.modes) == {"warm", "natural", "memory", *(["frozen"] if case.frozen else [])}
    usual = sorted(cycle[4] for cycle in result["cycles"])[len(result["cycles"]) // 2]
    assert usual == case.fetches
    trainable = [tensor for tensor in result["parameters"]["tensors"] if tensor["trainable"]]
    assert (result["parameters"]["exchangedBytes"], len(trainable)) == case.trainable
    assert not any("mod" in tensor["name"] for tensor in trainable), "named as in the model, whatever wraps it"
    assert result["memory"]["optimizerStepBytes"] > 0 or case.clock in ("fetchBackward", "backward")


def test_a_script_that_ends_early_says_how_far_it_came(zygote):
    run = zygote.run("ends_early.py", settings=QUICK | {"steps": 20})

    assert (run.status, run.result["ended"], run.result["iterations"]) == (0, "early", 11)
    assert run.result["parameters"]["exchangedBytes"] == 36


def test_a_script_that_swallows_everything_is_ended_all_the_same(zygote):
    run = zygote.run("catches_all.py", settings=QUICK)

    assert (run.status, run.result["ended"]) == (0, "stopped")
    assert len(run.losses) == run.result["iterations"] + 1, "nothing is trained after the end"


def test_a_script_cleans_up_behind_itself_when_it_is_ended(zygote):
    assert zygote.run("prefetches.py", settings=QUICK).output.splitlines()[-1] == "cleaned up"


def test_tied_weights_count_once_and_frozen_ones_are_listed_but_not_exchanged(zygote):
    tensors = zygote.run("tied_and_frozen.py", settings=QUICK).result["parameters"]["tensors"]

    assert [(tensor["name"], tensor["bytes"], tensor["trainable"]) for tensor in tensors] == [
        ("embedding.weight", 1600, True),
        ("frozen.weight", 256, False),
        ("frozen.bias", 32, False),
        ("unused.weight", 256, False),
        ("unused.bias", 32, False),
        ("output.bias", 200, True),
    ]


def test_out_of_memory_is_told_by_the_error_that_ended_the_script(zygote):
    run = zygote.run("out_of_memory.py", "64", settings=QUICK)

    assert run.status == 1
    assert run.result["ended"] == "crashed"
    assert "allocate" in run.result["error"]["message"]
