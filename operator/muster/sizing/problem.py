"""The question and its answer between the rules: what is to be decided upon, and what was decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from muster.api.inventory import Inventory
from muster.api.job import Scaling
from muster.api.report import Report
from muster.sizing.algorithms import algorithms
from muster.sizing.bounds import Cap, cap
from muster.sizing.goals import Target
from muster.sizing.iteration import Exchange, Law, Model, State
from muster.sizing.joint import Solution
from muster.sizing.minibatch import Candidate, ComputeCurve, Rejected, candidates
from muster.sizing.network import Network
from muster.sizing.placement import PLACEMENTS, Shards
from muster.sizing.request import Infeasible, Limits
from muster.sizing.servers import Links, Traffic


@dataclass(frozen=True)
class Problem:
    """Everything that is to be decided upon, with what follows from it at once."""

    report: Report
    target: Target
    limits: Limits
    inventory: Inventory | None

    @cached_property
    def network(self) -> Network:
        """The bandwidths to count with."""
        return Network.of(self.report, self.limits)

    @cached_property
    def _points(self) -> tuple[list[Candidate], list[Rejected]]:
        measured, rejected = candidates(self.report)
        if not measured:  # rather one that fitted while profiled, with a warning, than none
            tight = [one.timed for one in rejected if one.timed]
            measured = sorted(tight, key=lambda candidate: candidate.peak_bytes or 0)[:1]
        fitting = [self._with_algorithms(candidate) for candidate in measured]
        if not fitting:
            tried = "; ".join(one.message for one in rejected)
            raise Infeasible(
                "NoMiniBatchFits", f"No profiled mini-batch can be used: {tried}. Profile smaller mini-batches."
            )
        return fitting, rejected

    def _with_algorithms(self, candidate: Candidate) -> Candidate:
        found = algorithms(self.report, candidate, self.limits.workspace)
        return found.applied_to(candidate) if found else candidate

    @property
    def fitting(self) -> Sequence[Candidate]:
        """The mini-batches to choose from."""
        return self._points[0]

    @property
    def rejected(self) -> Sequence[Rejected]:
        """The mini-batches that cannot be chosen."""
        return self._points[1]

    @property
    def fixed_minibatch(self) -> int | None:
        """The batch that each GPU gets whatever is planned: the user's, or the script's own."""
        if self.limits.minibatch is not None:
            return self.limits.minibatch
        return None if self.report.mini_batch_applied else self.fitting[0].minibatch

    @property
    def law(self) -> Law:
        """What more GPUs do to batch and overhead."""
        if self.limits.scaling is Scaling.WEAK:
            return Law.OWN_LOAD
        return Law.SHARED_BATCH if self.fixed_minibatch is None else Law.SHARED_LOAD

    @cached_property
    def models(self) -> list[tuple[Model, Cap]]:
        """A model of each mini-batch that may be chosen, with its bound on workers."""
        chosen = {candidate.minibatch for candidate in self.fitting}
        tight = [one.timed for one in self.rejected if one.timed and one.minibatch not in chosen]
        curve = ComputeCurve([*self.fitting, *tight])
        fixed = self.fixed_minibatch
        eligible = list(self.fitting) if fixed is None else [curve.candidate(fixed)]
        baseline = max(candidate.samples_per_second for candidate in eligible)
        shards = self.shards
        models = []
        refused: Infeasible | None = None
        for candidate in eligible:
            shared = candidate.minibatch if self.law is Law.SHARED_BATCH else None
            try:
                bound = cap(self.limits, self.inventory, shared)
            except Infeasible as problem:
                refused = problem
                continue
            models.append((self._model(candidate, curve, shards, baseline), bound))
        if not models and refused:
            raise refused
        return models

    @cached_property
    def shards(self) -> Shards:
        """The trainable tensors under the framework's placement."""
        tensors = [tensor.elements for tensor in self.report.parameters.tensors if tensor.trainable]
        return Shards(tensors, PLACEMENTS[self.limits.framework])

    def _model(self, candidate: Candidate, curve: ComputeCurve, shards: Shards, baseline: float) -> Model:
        network = self.network
        exchange = Exchange.SERVERS
        if not self.limits.uses_servers:
            exchange = Exchange.ALL_REDUCE if network.worker_known else Exchange.UNKNOWN
        exchanged = self.report.parameters.exchanged_bytes
        tensors = sum(tensor.trainable for tensor in self.report.parameters.tensors)
        return Model(
            candidate=candidate,
            curve=curve,
            law=self.law,
            exchange=exchange,
            traffic=Traffic(exchanged, exchanged, max(1, tensors), network.latency),
            links=Links.equal(network.server, network.worker),
            shards=shards,
            baseline=baseline,
            gpus_per_worker=self.limits.gpus_per_worker,
            local_aggregation=self.limits.local_aggregation,
            most_servers=max(1, self.limits.max_servers),
            overlap=self.limits.overlap,
            fixed_servers=self.limits.servers if exchange is Exchange.SERVERS else None,
        )


@dataclass(frozen=True)
class Decision:
    """What is used (`state`), and what the rules recommend where the user did not decide (`recommended`).

    `solution` is None where no size meets the goal and the user's own count of workers is used all the same.
    """

    model: Model
    state: State
    recommended: State
    solution: Solution | None
    cap: Cap
