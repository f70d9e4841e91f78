"""A state machine drives `decide` through random interleavings of API results, pod events, time, deaths and spec
changes.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model.world import World, report, spec, template
from muster.api.status import ConditionType as Is
from muster.api.status import TrainingJobStatus
from muster.jobs import conditions, decide, members
from muster.jobs.draft import digest
from muster.jobs.model import CreatePod, Observed, Pod, ReportProblem, Role

CRD = yaml.safe_load((Path(__file__).parents[2] / "crds" / "muster.dev_trainingjobs.yaml").read_text())
STATUS = jsonschema.Draft202012Validator(
    CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
)
DISRUPTIONS: list[dict[str, Any]] = [
    {"reason": "Evicted"},
    {"disruption": "PreemptionByScheduler"},
    {"disruption": "DeletionByTaintManager"},
]


class LifeOfAJob(RuleBasedStateMachine):
    """Invariants are checked after every step, and each written status against the one before it."""

    @initialize(
        workers=st.integers(1, 3),
        servers=st.one_of(st.none(), st.integers(1, 2)),
        limit=st.integers(0, 3),
        success=st.sampled_from(["Chief", "AllWorkers"]),
        clean=st.sampled_from(["All", "Running", "None"]),
        framework=st.sampled_from(["Generic", "PyTorch", "MXNet", "TensorFlow"]),
        suspend=st.booleans(),
        from_config_map=st.booleans(),
        measured=st.booleans(),
    )
    def begin(
        self, from_config_map: bool, measured: bool, suspend: bool, limit: int, clean: str, **fields: Any
    ) -> None:
        policy = {"backoffLimit": limit, "cleanPodPolicy": clean, "suspend": suspend}
        profile = {"from": "ConfigMap", "configMapName": "old"} if from_config_map else {}
        workers, servers = fields.pop("workers"), fields.pop("servers")
        fields["successPolicy"] = fields.pop("success")
        fields |= {"network": {}} if measured else {}
        self.world = World(spec=spec(workers, servers, runPolicy=policy, profile=profile, **fields))
        if from_config_map:
            self.world.config_maps["old"] = {}
        self.seen: list[Observed] = []
        self.counted = self.disrupted = self.resumed = 0
        self.limits = [limit]
        self.misled = False
        self.removed: Counter[tuple[str, int]] = Counter()

    # The operator.

    @rule(dies_after=st.one_of(st.none(), st.none(), st.integers(0, 6)))
    def reconcile(self, dies_after: int | None) -> None:
        self._pass(self.world.observe(), dies_after)

    @rule(back=st.integers(1, 4))
    def reconcile_on_stale_pods(self, back: int) -> None:
        """The cache has the job as it is (its version is checked on every write), and pods as they were."""
        if len(self.seen) >= back:
            old, self.misled = self.seen[-back], True
            self._pass(replace(self.world.observe(), pods=old.pods, services=old.services), None)

    @rule()
    def restart_the_operator(self) -> None:
        self.world.memory = None

    def _pass(self, observed: Observed, dies_after: int | None) -> None:
        world = self.world
        self.seen.append(observed)
        before, decision = world.status, decide(observed, world.now, world.settings)
        again = decide(replace(observed, job=replace(observed.job, status=decision.status)), world.now, world.settings)
        assert observed.job.spec is not None
        replans = decision.status.plan is not None and decision.status.planned_for != digest(observed.job.spec)
        assert replans or not (changed := changes(decision.status, again.status)), f"deciding is not stable: {changed}"
        left = 10**6 if dies_after is None else dies_after
        if decision.status != before:
            if not left:
                return
            left -= 1
            self._check_write(before, decision.status)
            world.status = TrainingJobStatus.model_validate(decision.status.dump())
            assert world.status == decision.status, "a status does not survive as JSON"
        for action in decision.actions[:left]:
            if isinstance(action, CreatePod) and action.name not in world.pods:
                self._check_creation(action)
            world.act(action)
        if dies_after is not None:
            world.memory = None

    def _check_write(self, before: TrainingJobStatus, after: TrainingJobStatus) -> None:
        STATUS.validate(after.dump())
        assert conditions.is_true(after, Is.COMPLETE) + conditions.is_true(after, Is.FAILED) <= 1
        for kind in (Is.COMPLETE, Is.FAILED):
            if conditions.is_true(before, kind):
                assert conditions.get(after, kind) == replace_generation(before, after, kind), "an end is final"
        restarts, disruptions = after.restarts - before.restarts, after.disruptions - before.disruptions
        assert (restarts, disruptions) in [(0, 0), (1, 0), (0, 1)]
        assert after.restarts <= max(self.limits)
        resumed = conditions.is_true(before, Is.SUSPENDED) and not conditions.is_true(after, Is.SUSPENDED)
        bumped = after.attempt - before.attempt
        assert bumped in (0, 1, 2)  # A resumed job may be planned anew at once.
        if bumped:
            assert before.attempt == 0 or restarts or disruptions or resumed or before.plan != after.plan
        elif (restarts or disruptions) and self.world.spec and self.world.spec.framework != "TensorFlow":
            assert before.plan is None or before.attempt == 0, "a restart is a new attempt"
        self.resumed += resumed

    def _check_creation(self, action: CreatePod) -> None:
        world = self.world
        attempt = int(action.body["metadata"]["labels"]["muster.dev/attempt"])
        role = action.body["metadata"]["labels"]["muster.dev/role"]
        assert world.spec is not None
        assert not world.spec.run_policy.suspend
        assert not any(conditions.is_true(world.status, kind) for kind in (Is.COMPLETE, Is.FAILED))
        if role == "profiler":
            assert world.status.profile is None, "profiled twice"
            return
        if role == "peer":
            assert world.status.profile is None, "a peer without a profile"
            assert "job" in world.services, "a peer that has no address"
            return
        assert world.status.plan is not None, "the plan comes before its pods"
        assert "job" in world.services, "services come before pods"
        assert attempt == world.status.attempt
        if world.spec.framework != "TensorFlow":
            assert self.removed[action.name, attempt] >= world.created.count((action.name, attempt)), "made twice"

    # Kubelets, nodes and people.

    def _pods(self, *phases: str) -> list[str]:
        return sorted(name for name, pod in self.world.pods.items() if pod.phase in phases and not pod.deleting)

    @precondition(lambda self: self._pods("Pending"))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        waiting = self._pods("Pending")
        self.world.run(*data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique=True)))

    @precondition(lambda self: self._pods("Running"))
    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 137]), sidecar=st.booleans())
    def exit(self, data: st.DataObject, code: int, sidecar: bool) -> None:
        running = [name for name in self._pods("Running") if not self.world.pods[name].termination]
        if not running:
            return
        name = data.draw(st.sampled_from(running))
        self.world.profile = report() if code == 0 else ReportProblem("it crashed")
        self.world.exit(name, code, phase="Running" if sidecar else None)
        self.counted += code != 0

    @precondition(lambda self: self._pods("Pending", "Running"))
    @rule(data=st.data(), how=st.sampled_from(DISRUPTIONS))
    def disrupt(self, data: st.DataObject, how: dict[str, Any]) -> None:
        name = data.draw(st.sampled_from(self._pods("Pending", "Running")))
        self.world.change(name, phase="Failed", ready=False, **how)
        self.disrupted += 1

    @precondition(lambda self: self.world.pods)
    @rule(data=st.data())
    def collect(self, data: st.DataObject) -> None:
        """Somebody deletes a pod, or it is collected."""
        pod = self.world.pods[data.draw(st.sampled_from(sorted(self.world.pods)))]
        self.removed[pod.name, pod.attempt] += 1
        self.world.vanish(pod.name)
        self.disrupted += 1

    @rule(seconds=st.sampled_from([0, 1, 10, 60, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.world.tick(seconds)

    # The user.

    @rule(suspend=st.booleans())
    def suspend_or_resume(self, suspend: bool) -> None:
        self.world.policy(suspend=suspend)

    @rule(limit=st.integers(0, 3))
    def change_the_backoff_limit(self, limit: int) -> None:
        self.limits.append(limit)
        self.world.policy(backoffLimit=limit)

    @rule(workers=st.integers(1, 4))
    def change_the_number_of_workers(self, workers: int) -> None:
        self.world.respec(worker={"template": template(), "replicas": workers})

    # What always holds.

    def _training_pods(self) -> list[Pod]:
        return [pod for pod in self.world.pods.values() if pod.role not in (Role.PROFILER, Role.PEER)]

    @invariant()
    def never_more_pods_than_planned(self) -> None:
        pods = self._training_pods()
        if pods:
            assert self.world.status.plan is not None
            assert self.world.spec is not None
            if not self.world.spec.run_policy.suspend and all(p.attempt == self.world.status.attempt for p in pods):
                assert len(pods) <= len(members.of(self.world.spec, self.world.status.plan))

    @invariant()
    def attempts_never_mix(self) -> None:
        """Unless the operator was misled by a stale cache; then it mends that by itself."""
        mixed = len({pod.attempt for pod in self._training_pods()}) > 1
        assert self.misled or not mixed
        self.misled = self.misled and mixed

    @invariant()
    def counts_are_those_of_what_happened(self) -> None:
        assert self.world.status.restarts <= self.counted

    def teardown(self) -> None:
        """From wherever it is, the job comes to its end when it is let."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.policy(suspend=False)
        world.memory, world.profile = None, report()
        for _ in range(100):
            self._pass(world.observe(), None)
            if world.status.completion_time:
                break
            world.tick(400)
            world.run()
            for name in self._pods("Running"):
                if not world.pods[name].termination:
                    world.exit(name)
        assert world.status.completion_time, f"never ends: {world.status.state}"
        for _ in range(3):
            self._pass(world.observe(), None)
            world.tick(400)
        assert not [pod for pod in world.pods.values() if pod.role == Role.PEER], "a peer outlives the profile"
        event(f"{world.status.state} after {min(world.status.attempt, 4)} attempts")


def changes(before: TrainingJobStatus, after: TrainingJobStatus) -> dict[str, Any]:
    old, new = before.dump(), after.dump()
    return {key: (old.get(key), new.get(key)) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def replace_generation(before: TrainingJobStatus, after: TrainingJobStatus, kind: Is) -> Any:
    found = conditions.get(before, kind)
    assert found is not None
    return found.model_copy(update={"observed_generation": after.observed_generation})


LifeOfAJob.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestLifeOfAJob = LifeOfAJob.TestCase
