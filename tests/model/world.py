"""A small honest world for pure tests: an API server that keeps a job and its pods, and kubelets that do what they
are told to.

Nothing here decides. Writes take effect at once and in order; a status survives only as the JSON that the API server
would keep.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from muster.api import labels
from muster.api.inventory import Inventory
from muster.api.job import TrainingJobSpec
from muster.api.report import Report
from muster.api.status import Condition, ConditionType, TrainingJobStatus
from muster.jobs import Settings, conditions, decide
from muster.jobs.model import (
    Action,
    CreateConfigMap,
    CreatePod,
    CreateService,
    Decision,
    DeleteJob,
    DeletePod,
    DeleteService,
    Event,
    Job,
    Observed,
    Pod,
    Progress,
    ReadProgress,
    ReadReport,
    Refusal,
    ReportProblem,
    Role,
    Termination,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = "registry.example.com/train:1"


def template(
    *, gpus: int = 1, command: tuple[str, ...] = ("python", "train.py", "--batch-size", "$(MUSTER_MINIBATCH)")
) -> Any:
    """A pod template with one container."""
    resources = {"limits": {labels.GPU_RESOURCE: gpus}} if gpus else {}
    container = {"name": "train", "image": IMAGE, "command": list(command), "resources": resources}
    return {"spec": {"containers": [container]}}


def spec(workers: int | None = 3, servers: int | None = 2, **fields: Any) -> TrainingJobSpec:
    """A job's spec; without servers an all-reduce job."""
    worker = {"template": template()} | ({"replicas": workers} if workers else {})
    network = {"serverBandwidth": "1GB", "workerBandwidth": "1GB"}  # Given: so there is no peer pod.
    body: dict[str, Any] = {"goal": {"efficiencyPercent": 50}, "worker": worker, "network": network}
    if servers is not None:
        body["server"] = {"template": template(gpus=0), "replicas": servers}
    return TrainingJobSpec.model_validate(body | fields)


def report(*fitting: int, failing: tuple[int, ...] = ()) -> Report:
    """A profile in which compute takes 1 ms a sample, and overhead 2 % of it."""

    def timing(nanoseconds: int) -> dict[str, int]:
        names = ("median", "lowerQuartile", "upperQuartile", "intervalLow", "intervalHigh")
        return {f"{name}Nanoseconds": nanoseconds for name in names} | {"cycles": 10}

    points: list[dict[str, Any]] = [
        {
            "miniBatch": batch,
            "fits": True,
            "computeTime": timing(batch * 1_000_000),
            "overheadTime": timing(batch * 20_000),
            "memory": {"peakBytes": batch * 2**20},
        }
        for batch in (fitting or (() if failing else (32, 64)))
    ]
    points += [{"miniBatch": batch, "fits": False, "problem": "out of memory"} for batch in failing]
    return Report.model_validate(
        {
            "format": "muster.dev/profile/v1",
            "device": {"kind": "cuda", "name": "NVIDIA H200", "memoryBytes": 150 * 2**30},
            "framework": {"name": "torch", "version": "2.13"},
            "parameters": {
                "bytes": 4_000_000,
                "exchangedBytes": 4_000_000,
                "tensors": [{"name": f"layer{n}", "elements": 10_000, "bytes": 40_000} for n in range(100)],
            },
            "network": {"rates": [{"streams": 1, "upBytesPerSecond": 10**9, "downBytesPerSecond": 10**9}]},
            "points": sorted(points, key=lambda point: point["miniBatch"]),
        }
    )


@dataclass
class World:
    """One job and all that belongs to it. `created` and `events` are the history."""

    spec: TrainingJobSpec | None = field(default_factory=spec)
    name: str = "job"
    uid: str = "job-uid"
    now: datetime = START
    status: TrainingJobStatus = field(default_factory=TrainingJobStatus)
    generation: int = 1
    labels: tuple[tuple[str, str], ...] = ()
    spec_error: str | None = None
    deleting: bool = False
    gone: bool = False
    pods: dict[str, Pod] = field(default_factory=dict)
    bodies: dict[str, Any] = field(default_factory=dict)
    services: dict[str, Any] = field(default_factory=dict)
    config_maps: dict[str, Any] = field(default_factory=dict)
    profile: Report | ReportProblem = field(default_factory=report)
    memory: tuple[Report | ReportProblem, str] | None = None
    progress: Progress | None = None
    inventory: Inventory | None = None
    refusals: tuple[Refusal, ...] = ()
    settings: Settings = field(default_factory=Settings)
    created: list[tuple[str, int]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    profiles_read: int = 0
    writes: int = 0
    _uids: Any = field(default_factory=lambda: count(1))

    # What the operator does.

    def observe(self) -> Observed:
        """The snapshot that a cache would give."""
        job = Job(
            namespace="team",
            name=self.name,
            uid=self.uid,
            generation=self.generation,
            created=START,
            spec=self.spec,
            status=self.status,
            labels=self.labels,
            spec_error=self.spec_error,
            deleting=self.deleting,
        )
        found, origin = self.memory or (None, "")
        return Observed(
            job=job,
            pods=tuple(self.pods.values()),
            services=tuple(self.services),
            config_maps=tuple(self.config_maps),
            report=found,
            report_digest="sha256:" + "0" * 64 if found else "",
            report_of=origin,
            progress=self.progress,
            inventory=self.inventory,
            refusals=self.refusals,
        )

    def reconcile(self, *, dies_after: int | None = None) -> Decision:
        """One pass. With `dies_after`, the operator is killed after so many of its writes, and forgets what it had
        read.
        """
        decision = decide(self.observe(), self.now, self.settings)
        writes: list[Callable[[], None]] = []
        if decision.status != self.status:
            writes.append(lambda: self._write(decision.status))
        writes += [lambda action=action: self.act(action) for action in decision.actions]  # type: ignore[misc]
        for write in writes[:dies_after]:
            write()
        if dies_after is not None and dies_after <= len(writes):
            self.memory = self.progress = None
        else:
            self.events += decision.events
        return decision

    def _write(self, status: TrainingJobStatus) -> None:
        self.status = TrainingJobStatus.model_validate(status.dump())
        self.writes += 1

    def act(self, action: Action) -> None:
        """What the API server does."""
        match action:
            case CreatePod(name, body):
                if name not in self.pods:
                    self._create(name, body)
            case CreateService(name, body):
                self.services[name] = body
            case CreateConfigMap(name, body):
                self.config_maps[name] = body
            case DeleteService(name):
                self.services.pop(name, None)
            case DeletePod(name, uid, grace):
                pod = self.pods.get(name)
                if pod and pod.uid == uid:
                    self.deleted.append(name)
                    over = pod.phase in ("Succeeded", "Failed") or grace == 0 or not pod.node
                    self.pods[name] = replace(pod, deleting=True, gone_by=self.now + timedelta(seconds=30))
                    if over:
                        del self.pods[name]
            case DeleteJob():
                self.gone = True
            case ReadProgress(name, uid):
                if name in self.pods:
                    self.progress = Progress(uid, "mini-batch 32 (2 of 4)", self.now)
            case ReadReport(pod, config_map):
                self._read(pod, config_map)

    def _create(self, name: str, body: Any) -> None:
        own = body["metadata"]["labels"]
        self.bodies[name] = body
        self.created.append((name, int(own[labels.ATTEMPT])))
        self.pods[name] = Pod(
            name=name,
            uid=f"uid-{next(self._uids)}",
            owner_uid=body["metadata"]["ownerReferences"][0]["uid"],
            role=Role(own[labels.ROLE]),
            index=int(own[labels.INDEX]),
            attempt=int(own[labels.ATTEMPT]),
            phase="Pending",
            created=self.now,
        )

    def _read(self, pod: str | None, config_map: str | None) -> None:
        self.profiles_read += 1
        if pod is not None:
            if pod in self.pods:
                self.memory = (self.profile, self.pods[pod].uid)
            return
        name = config_map or ""
        there = name in self.config_maps
        self.memory = (self.profile if there else ReportProblem(f"{name} does not exist", self.now), name)

    # What kubelets, nodes, people and time do.

    def change(self, name: str, **fields: Any) -> None:
        """Changes what is seen of a pod."""
        self.pods[name] = replace(self.pods[name], **fields)

    def run(self, *names: str) -> None:
        """Starts pods; all that wait, where none is named."""
        for name in names or [pod.name for pod in self.pods.values() if pod.phase == "Pending" and not pod.deleting]:
            self.change(name, phase="Running", ready=True, node="node-1", started=self.now)

    def exit(self, name: str, code: int = 0, *, reason: str = "", message: str = "", phase: str | None = None) -> None:
        """Ends a pod's training container, and the pod with it unless `phase` says otherwise."""
        ended = phase or ("Succeeded" if code == 0 else "Failed")
        end = Termination(code, reason or ("Completed" if code == 0 else "Error"), message, self.now)
        self.change(name, phase=ended, ready=False, node="node-1", termination=end)

    def vanish(self, name: str) -> None:
        """Removes a pod at once, as a garbage collection does."""
        del self.pods[name]

    def tick(self, seconds: float = 0) -> None:
        """Lets time pass, and kubelets finish what is being deleted."""
        self.now += timedelta(seconds=seconds)
        self.pods = {name: pod for name, pod in self.pods.items() if not pod.deleting}

    def respec(self, **fields: Any) -> None:
        """The user applies a changed spec, by its top-level fields."""
        assert self.spec is not None
        self.spec = TrainingJobSpec.model_validate(self.spec.dump() | fields)
        self.generation += 1

    def policy(self, **fields: Any) -> None:
        """The user applies a changed run policy."""
        assert self.spec is not None
        self.respec(runPolicy=self.spec.run_policy.dump() | fields)

    # Ways that tests begin with.

    def settle(self) -> Decision:
        """Reconciles until nothing changes."""
        for _ in range(20):
            before = (self.status, dict(self.pods), dict(self.services), dict(self.config_maps), self.memory)
            decision = self.reconcile()
            if before == (self.status, self.pods, self.services, self.config_maps, self.memory):
                return decision
        raise AssertionError("it never settles")

    def profiled(self) -> "World":
        """The job with its profile and plan, and the pods of its first attempt made."""
        self.settle()
        self.run()
        self.exit(f"{self.name}-profiler")
        self.settle()
        return self

    def running(self) -> "World":
        """The job with every pod of its first attempt ready."""
        self.profiled()
        self.run()
        self.settle()
        return self

    # What tests ask.

    def condition(self, kind: ConditionType) -> Condition:
        """A condition of the status."""
        found = conditions.get(self.status, kind)
        assert found is not None, kind
        return found

    def says(self, kind: ConditionType) -> tuple[str, str]:
        """A condition's status and reason."""
        condition = self.condition(kind)
        return condition.status, condition.reason

    def env(self, name: str) -> dict[str, str]:
        """The environment of a pod's training container."""
        container = next(c for c in self.bodies[name]["spec"]["containers"] if c["name"] == "train")
        return {entry["name"]: entry.get("value", "") for entry in container["env"]}
