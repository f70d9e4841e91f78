"""The command line: `python -m muster_profiler run [OPTIONS] -- COMMAND ...`."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import Any

from muster_profiler import network, profile, progress, report
from muster_profiler.failures import OUT_OF_MEMORY, Problem

ENDED_EARLY = "the profile was ended from outside before its first result"
KILLED = "the container was killed while this mini-batch was profiled: most likely it ran out of memory"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 reported, 1 no report, 2 wrong usage."""
    asked = _parser().parse_args(arguments)
    if asked.front == "peer":
        network.serve(asked.port, asked.seconds)
        return 0
    command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    if not command:
        print("muster-profile: give the training command after --, like `run -- python train.py`", file=sys.stderr)
        return 2
    if asked.report and not _writable(asked.report):
        print("muster-profile: --report %s: there is no file that could be written" % asked.report, file=sys.stderr)
        return 2
    if asked.front == "entry":
        command = [sys.executable, "-m", "muster_profiler.entry", *command, "$(MUSTER_MINIBATCH)"]
    options = profile.Options(
        candidates=asked.minibatch,
        warmup_steps=asked.warmup_steps,
        steps=asked.steps,
        deadline_seconds=asked.deadline_seconds,
        declared=asked.front == "entry",
        peer=asked.peer,
        convolution_seconds=asked.convolution_seconds,
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_PROFILE_")}
    run = profile.Profile(command, environment, options, progress.WAYS[asked.progress], _note(asked.termination_log))
    signal.signal(signal.SIGTERM, _terminated)
    try:
        found = run.run()
    except Problem as problem:
        return _fail(asked.termination_log, problem)
    except _Terminated:
        if not any("computeTime" in point for point in run.points):
            return _fail(
                asked.termination_log,
                Problem("Terminated", ENDED_EARLY),
            )
        found = run.report()
    _publish(found, asked.report, asked.termination_log)
    return 0


class _Terminated(Exception):
    pass


def _terminated(_signal: int, _frame: Any) -> None:
    raise _Terminated


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muster_profiler", description="Profile a training script for a minute.")
    fronts = parser.add_subparsers(dest="front", required=True)
    for name, text in (
        ("run", "an unmodified training command; $(MUSTER_MINIBATCH) in it receives each candidate"),
        ("entry", "a declared entry point, package.module:function"),
    ):
        front = fronts.add_parser(name, help=text, description=text)
        front.add_argument("--report", metavar="FILE", help="also write the report here")
        front.add_argument("--termination-log", metavar="FILE", help="write a summary of at most 4096 bytes here")
        front.add_argument(
            "--minibatch", type=_sizes, metavar="32,64,128", default=_default("MINIBATCHES", _sizes, None)
        )
        front.add_argument(
            "--warmup-steps",
            type=_count_or_none,
            metavar="N",
            default=_default("WARMUP_STEPS", _count_or_none, 0),
            help="iterations before timing, at least (default: until steady)",
        )
        front.add_argument(
            "--steps",
            type=_count,
            metavar="N",
            default=_default("STEPS", _count, 20),
            help="iterations timed of each kind (default: 20), and up to 5 times that while they still differ",
        )
        front.add_argument(
            "--deadline-seconds", type=_count, metavar="N", default=_default("DEADLINE_SECONDS", _count, 600)
        )
        front.add_argument(
            "--convolution-seconds",
            type=int,
            metavar="N",
            default=_default("CONVOLUTION_SECONDS", int, None),
            help="for convolution algorithms, 0: none (default: what the candidates leave of a minute)",
        )
        front.add_argument(
            "--peer",
            metavar="HOST:PORT",
            default=os.environ.get("MUSTER_PROFILE_PEER"),
            help="also measure the network against what `peer` serves there",
        )
        front.add_argument("--progress", choices=sorted(progress.WAYS), default="plain")
        front.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    peer = fronts.add_parser("peer", help="the other end of the network measurement")
    peer.add_argument("--port", type=_count, metavar="N", required=True)
    peer.add_argument("--seconds", type=_count, metavar="N", default=3600, help="then it ends by itself")
    return parser


def _default(name: str, parse: Any, otherwise: Any) -> Any:
    text = os.environ.get("MUSTER_PROFILE_" + name)
    return parse(text) if text else otherwise


def _count_or_none(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError("must be from 1 to 1000000")
    return value


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.replace(" ", "").split(",") if part)


def _note(termination_log: str | None) -> Any:
    """Before each trial: leave what is known where it survives if the kernel kills the whole container."""

    def note(known: dict[str, Any] | None, mini_batch: int | None) -> None:
        if known is None:
            text = "out of memory (or killed from outside) at the first mini-batch%s: give a smaller one or more memory"
            content = report.problem(OUT_OF_MEMORY, text % (" (%d)" % mini_batch if mini_batch else ""))
        else:
            in_flight = [{"miniBatch": mini_batch, "fits": False, "problem": KILLED}] if mini_batch else []
            content = report.summary(dict(known, points=[*known["points"], *in_flight]), None)
        _write(termination_log, content)

    return note


def _publish(found: dict[str, Any], path: str | None, termination_log: str | None) -> None:
    content = report.text(found)
    _write(path, content + "\n")
    _write(termination_log, report.summary(found, report.digest(content)))
    sys.stderr.flush()
    print("\n".join(report.lines(content)), flush=True)


def _fail(termination_log: str | None, problem: Problem) -> int:
    _write(termination_log, report.problem(problem.reason, problem.message))
    sys.stdout.flush()
    print("muster-profile: %s: %s" % (problem.reason, problem.message), file=sys.stderr, flush=True)
    return 1


def _writable(path: str) -> bool:
    if os.path.exists(path):
        return not os.path.isdir(path) and os.access(path, os.W_OK)
    return os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


def _write(path: str | None, content: str) -> None:
    if path:
        with contextlib.ExitStack() as stack:
            stack.enter_context(open(path, "w")).write(content)


if __name__ == "__main__":
    sys.exit(main())
