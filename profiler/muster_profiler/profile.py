"""The whole profile: one trial a candidate mini-batch, smallest first, within a budget; then the report."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from muster_profiler import command, convolutions, network, process, search, stages, trial
from muster_profiler.failures import OUT_OF_MEMORY, Failure, Problem
from muster_profiler.points import caveats, own_batch, pass_samples, point, too_few
from muster_profiler.progress import Tell
from muster_profiler.report import FORMAT

DEFAULT_CANDIDATES = (32, 64, 128, 256)
"""Where nobody gave any: a start, from which a search goes on."""
BUDGET_SECONDS = 60.0
"""For measuring all candidates; starting Python and building the model come on top."""
CONVOLUTION_SECONDS = 20.0
"""Of the budget, kept for convolution algorithms as soon as it is known that the script has convolutions."""
SEARCH_SECONDS = 30.0
"""On top, for mini-batches beside the default ones: while they pay, and for the largest that fits."""
MOST_FURTHER = 7
MOST_PROBES = 4
LEAST_ITERATIONS = 10
"""Of a further trial, for which there must be time."""
PATIENCE = 5
"""Times the iterations asked for, while blocks of them still differ and there is time."""
RESERVE_SECONDS = 3.0
PEER_SECONDS = 20.0
"""How long a peer is waited for after the trials, during which it had time to start."""
SHORTEST = 6
"""Iterations that a script must have for a second, shorter try when it ends early."""


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    candidates: tuple[int, ...] | None = None
    warmup_steps: int = 0
    steps: int = 20
    deadline_seconds: float = 600.0
    forward: bool = True
    declared: bool = False
    """Whether the command is a declared entry point."""
    convolution_seconds: float | None = None
    """For convolution algorithms. None: what the candidates leave of the budget."""
    peer: str | None = None
    """host:port of what the network is measured against."""


@dataclass
class Profile:
    """One run of the profiler. `note` is called with what is known, and the candidate that comes next if one does, in
    case the whole container is killed by it."""

    arguments: list[str]
    environment: Mapping[str, str]
    options: Options
    tell: Tell
    note: Callable[[dict[str, Any] | None, int | None], None] = lambda *_: None
    warnings: list[dict[str, str]] = field(default_factory=list)
    last: dict[str, Any] | None = None
    failures: list[Failure] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    network: dict[str, Any] | None = None
    convolutions: convolutions.Convolutions | None = None
    tried: search.Tried = field(default_factory=search.Tried)
    searched: float = 0.0
    """Seconds, of SEARCH_SECONDS."""
    largest: dict[str, Any] | None = None

    def run(self) -> dict[str, Any]:
        """Profile all candidates.

        :returns: the report
        :raises Problem: if no candidate brought a result
        """
        self.began = time.monotonic()
        self.applies = command.mentions(self.arguments, self.environment)
        candidates: list[int | None] = [*self._candidates()] if self.applies else [None]
        self.tell("begin", candidates=len(candidates), miniBatches=[c for c in candidates if c])
        for number, mini_batch in enumerate(candidates, 1):
            left = len(candidates) - number + 1
            reason = self._why_stop()
            if reason:
                text = "not tried: %s" % ", ".join(str(c) for c in candidates[number - 1 :])
                self._warn("CandidatesSkipped", "%s: %s" % (text, reason))
                break
            if mini_batch and self._cannot_fit(mini_batch):
                continue
            larger = [c / mini_batch for c in candidates if c and c > mini_batch] if mini_batch else []
            self._candidate(mini_batch, number, len(candidates), left, larger)
        if self.applies and not self.options.candidates:
            self._search(len(candidates))
        if not self.last or not any("computeTime" in p for p in self.points):
            raise self._problem()
        self.note(self.report(), None)
        if self._measures_convolutions():
            self._measure_convolutions()
        if self.options.peer:
            self._measure_network(self.options.peer)
        if self.applies:
            self.note(self.report(), None)
            self._find_largest()
        self.tell("end", seconds=time.monotonic() - self.began)
        return self.report()

    @property
    def points(self) -> list[dict[str, Any]]:
        """Of the report."""
        return self.tried.points

    def report(self) -> dict[str, Any]:
        """What is known now."""
        assert self.last is not None
        warnings = {
            w["reason"]: w
            for w in [
                *self.last["warnings"],
                *self.warnings,
                *(self.convolutions.warnings if self.convolutions else []),
            ]
        }
        return {
            "format": FORMAT,
            "device": self.last["device"],
            "framework": self.last["framework"],
            "parameters": self.last["parameters"] or {"bytes": 0, "exchangedBytes": 0, "tensors": []},
            "points": self.points,
            "miniBatchApplied": self.applies,
            "warnings": list(warnings.values())[:32],
            "environment": self.last["environment"],
            **({"largestMiniBatch": self.largest} if self.largest else {}),
            **({"network": self.network} if self.network else {}),
            **self._convolutions_found(),
        }

    def _measures_convolutions(self) -> bool:
        return bool(self.last and self.last.get("convolutional") and self.options.convolution_seconds != 0)

    def _measure_convolutions(self) -> None:
        assert self.last is not None
        given = self.options.convolution_seconds
        now = time.monotonic()
        until = max(self.began + BUDGET_SECONDS, now + CONVOLUTION_SECONDS) if given is None else now + given

        def trial(batch: int, settings: Mapping[str, Any], more: Mapping[str, str]) -> process.Outcome:
            self.tell("convolutions", miniBatch=batch, setting=" ".join([settings.get("switch", ""), *more]).strip())
            return self._trial(batch if self.applies else None, 1, settings, more)

        def left() -> float:
            return min(until - time.monotonic(), self._remaining() - convolutions.LEAST_SECONDS)

        self.convolutions = found = convolutions.Convolutions(trial, left)
        found.measure(self.points, self.last["device"]["kind"], self.last["environment"])

    def _convolutions_found(self) -> dict[str, Any]:
        found = self.convolutions
        parts = {"convolutions": found.rows, "convolutionTrials": found.trials} if found else {}
        return {key: value for key, value in parts.items() if value}

    def _measure_network(self, peer: str) -> None:
        patience = min(PEER_SECONDS, self._remaining() - network.DURATION_SECONDS)
        if patience <= 0:
            self._warn("NetworkNotMeasured", "The deadline left no time to measure the network.")
            return
        self.tell("network", peer=peer)
        try:
            self.network = network.measure(peer, patience)
        except network.Unreachable as error:
            self._warn("NetworkNotMeasured", "The network was not measured: %s." % error)

    def _candidates(self) -> list[int]:
        return sorted(set(self.options.candidates or DEFAULT_CANDIDATES))[:16]

    def _remaining(self) -> float:
        return self.options.deadline_seconds - RESERVE_SECONDS - (time.monotonic() - self.began)

    def _why_stop(self) -> str | None:
        """Why no further (larger) candidate is tried."""
        if self._remaining() <= 0:
            return "the deadline of %.0f s came first" % self.options.deadline_seconds
        last_two = self.failures[-2:]
        if len(last_two) == 2 and not any("computeTime" in p for p in self.points[-2:]):
            return "the two before them failed alike" if last_two[0].reason == last_two[1].reason else None
        return None

    def _cannot_fit(self, mini_batch: int) -> bool:
        """Note a batch that clearly will not fit, or that the data set cannot fill, untried."""
        problem = self.tried.too_large(mini_batch)
        if problem:
            self.tried.too_much.add(mini_batch)
        problem = problem or too_few(mini_batch, self.tried.pass_samples)
        if problem:
            self.points.append({"miniBatch": mini_batch, "fits": False, "problem": problem})
            self.tell("trial", miniBatch=mini_batch, state="failed", problem=problem)
        return problem is not None

    # ---- the search beside the candidates

    def _search(self, tried: int) -> None:
        """Mini-batches beside the default ones, as long as there is one that is worth its time."""
        for number in range(tried + 1, tried + 1 + MOST_FURTHER):
            mini_batch = self.tried.further()
            last = self.points[-1]
            failed_otherwise = not last["fits"] and last["miniBatch"] not in self.tried.too_much
            if not mini_batch or failed_otherwise or not self._time_to_search(mini_batch):
                return
            self._candidate(mini_batch, number, number, 1, [])
            self.searched += self.durations[-1]

    def _find_largest(self) -> None:
        """The largest mini-batch that fits: predicted; and, where the candidates are Muster's to choose, tried in a
        process of its own over whole iterations, and predicted anew with what that brought."""
        for _ in range(0 if self.options.candidates else MOST_PROBES):
            mini_batch = self.tried.unsure()
            if mini_batch is None or not self._time_to_search(mini_batch):
                break
            self.tell("largest", miniBatch=mini_batch)
            settings = {"warmup_steps": 1, "settle": False, "steps": 0}
            outcome = self._trial(mini_batch, 1, settings)
            self.searched += outcome.seconds
            probe, failure = point(mini_batch, outcome)
            if failure.reason != OUT_OF_MEMORY if failure else "memory" not in probe:
                break
            self.tried.probes.append(probe)
            if failure:
                self.tried.too_much.add(mini_batch)
        self.largest = self.tried.largest()

    def _time_to_search(self, mini_batch: int) -> bool:
        left = self._remaining()
        if any(p["fits"] for p in self.points):  # else there is nothing yet, and any time is well spent
            left = min(left, SEARCH_SECONDS - self.searched)
        return left > min(self.durations, default=0.0) / 2 + self.tried.seconds(mini_batch, LEAST_ITERATIONS)

    # ---- one candidate

    def _candidate(self, mini_batch: int | None, number: int, count: int, left: int, larger: list[float]) -> None:
        """Run and time it. `larger`: mini-batches, as multiples of it, whose memory is estimated by the way."""
        self.note(self.report() if self.last and self.points else None, mini_batch)
        self.tell("trial", miniBatch=mini_batch, state="started", trial=number, trials=count)
        budget = BUDGET_SECONDS - (CONVOLUTION_SECONDS if self._measures_convolutions() else 0)
        seconds = max(3.0, min(15.0, budget / count, self._remaining() / (2 * left)))
        settings = {
            "warmup_steps": self.options.warmup_steps,
            "steps": self.options.steps,
            "most_steps": PATIENCE * self.options.steps,
            "seconds": seconds,
            "estimate": [*larger, search.MOST_TIMES] if mini_batch and not self.last else [],
        }
        outcome = self._trial(mini_batch, left, settings)
        result = outcome.results[0] if outcome.results else None
        if result and result["ended"] == "early" and result["iterations"] >= SHORTEST and not _both(result):
            outcome, result = self._again(mini_batch, left, settings, outcome)
        found, failure = point(mini_batch or own_batch(result) or 1, outcome)
        few = too_few(mini_batch, pass_samples(mini_batch, result)) if mini_batch and result else None
        if few and count > 1:  # with times of smaller batches it would seem the fastest
            found = {"miniBatch": found["miniBatch"], "fits": False, "problem": few}
            failure = Failure("TooFewSamples", few)
        elif few:
            self._warn("MiniBatchMismatch", "Not all batches have %s samples: %s." % (mini_batch, few))
        self.tried.foretold(found)
        self.points.append(found)
        self.durations.append(outcome.seconds)
        if failure:
            self.failures.append(failure)
            if failure.reason == OUT_OF_MEMORY:
                self.tried.too_much.add(found["miniBatch"])
            self.tell("trial", miniBatch=found["miniBatch"], state="failed", problem=failure.message)
        if result and "computeTime" in found:
            self.last = result
            self.tried.memory_bytes = result["device"]["memoryBytes"] - result["memory"].get("outsideBytes", 0)
            self.tried.pass_samples = pass_samples(mini_batch, result)
            self.warnings += caveats(mini_batch, found, result)
            for each in result["estimates"] if result["samples"] == mini_batch else []:
                self.tried.estimated[round(mini_batch * each.pop("multiple"))] = each
        if not failure:
            self.tell("trial", miniBatch=found["miniBatch"], state="done", **_facts(found))

    def _again(
        self, mini_batch: int | None, left: int, settings: Mapping[str, Any], before: process.Outcome
    ) -> tuple[process.Outcome, dict[str, Any]]:
        """The script is short: try once more, with blocks that its length allows."""
        iterations, prefetched = before.results[0]["iterations"], before.results[0]["prefetched"]
        again = self._trial(mini_batch, left, dict(settings, **stages.within(iterations, prefetched)))
        at = " at a mini-batch of %d" % mini_batch if mini_batch else ""
        self._warn("ScriptEndsEarly", "The script ended after %d iterations%s: fewer were timed." % (iterations, at))
        outcome = again if again.results and _both(again.results[0]) else before
        return outcome, outcome.results[0]

    def _trial(
        self, mini_batch: int | None, left: int, settings: Mapping[str, Any], more: Mapping[str, str] = {}
    ) -> process.Outcome:
        timeout = self._remaining() * 2 / (left + 1)
        if self.durations:
            timeout = min(timeout, max(60.0, 10 * max(self.durations)))
        directory = tempfile.mkdtemp(prefix="muster-profile-")
        try:
            arguments, environment = command.applied(self.arguments, {**self._environment(), **more}, mini_batch)
            told = trial.Settings(directory=directory, declared=self.options.declared, **settings)
            return process.run(arguments, environment, told, timeout, self.options.forward, self._watch(mini_batch))
        except OSError as error:
            raise Problem(
                "CommandNotFound",
                "cannot start %s: %s. Is it spelt right, and there (in a pod: in the image)?"
                % (self.arguments[0], error.strerror),
            ) from error
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _watch(self, mini_batch: int | None) -> Callable[[dict[str, Any]], None]:
        def watch(result: dict[str, Any]) -> None:
            self.tell("progress", miniBatch=mini_batch, iterations=result["iterations"])

        return watch

    def _environment(self) -> dict[str, str]:
        return {**command.TRACKERS, **self.environment, "PYTHONUNBUFFERED": "1"}

    def _warn(self, reason: str, message: str) -> None:
        self.warnings.append({"reason": reason, "message": message})

    def _problem(self) -> Problem:
        if not self.failures:
            text = "the deadline of %.0f s left no time for a trial" % self.options.deadline_seconds
            return Problem("DeadlineExceeded", text)
        first = self.failures[0]
        if any(failure.reason != OUT_OF_MEMORY for failure in self.failures):
            return Problem(first.reason, first.message)
        sizes = [p["miniBatch"] for p in self.points]
        which = ", ".join(map(str, sizes)) if self.applies else "the script's own"
        ways = "more memory" if self.applies and min(sizes) == 1 else "smaller candidates or more memory"
        return Problem(OUT_OF_MEMORY, "no candidate mini-batch (%s) fits: %s. Give %s" % (which, first.message, ways))


def _both(result: Mapping[str, Any]) -> bool:
    modes = {cycle[0] for cycle in result["cycles"] if cycle[2]}
    return {trial.NATURAL, trial.FROZEN} <= modes or (trial.NATURAL in modes and not result["frozen"])


def _facts(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "computeMicroseconds": found["computeTime"]["medianNanoseconds"] // 1000,
        "overheadMicroseconds": found["overheadTime"]["medianNanoseconds"] // 1000,
        "peakMemoryBytes": found.get("memory", {}).get("peakBytes", 0),
        "fits": found["fits"],
        "steady": found["steady"],
    }
