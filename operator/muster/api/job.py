"""The TrainingJob as a user writes it: `kubectl explain` prints the descriptions, a refused user reads the messages."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from muster.api.bandwidth import BANDWIDTH
from muster.api.labels import MANAGED_BY, TRAINING_CONTAINER
from muster.api.model import Strict
from muster.api.rules import Rule, Ruled
from muster.api.template import PodTemplate as PodTemplate

POWERS_OF_TWO = tuple(2**exponent for exponent in range(20))
"""The mini-batches that `min` and `max` choose from."""

Integer = Annotated[int, Field(strict=True)]
"""Not "5", which the API server refuses."""
Count = Annotated[Integer, Field(ge=1, le=512)]
"""Of workers or servers."""
Samples = Annotated[Integer, Field(ge=1, le=1_000_000)]
"""A mini-batch: samples per GPU and iteration."""
Bandwidth = Annotated[str, Field(max_length=32), BANDWIDTH]
Speedup = Annotated[
    str,
    Field(max_length=8),
    Rule(
        'write a speed-up above 0 and below 10000, with at most three decimals, as a string: "7.5"',
        cel="self.matches('^[0-9]{1,4}([.][0-9]{1,3})?$') && self.matches('[1-9]')",
        holds=lambda text: bool(re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", text)) and float(text) > 0,
    ),
]


class Framework(StrEnum):
    """Decides which environment the pods get, what a lost pod demands, and how tensors are laid on servers."""

    PYTORCH = "PyTorch"
    TENSORFLOW = "TensorFlow"
    MXNET = "MXNet"
    BYTEPS = "BytePS"
    PADDLE = "Paddle"
    GENERIC = "Generic"


class Deadline(Strict):
    """Train `samples` samples within `seconds` seconds."""

    seconds: Integer = Field(ge=1, le=100_000_000, description="Of training.")
    samples: Integer = Field(ge=1, le=10**15, description="Of all workers: the data set's size times its epochs.")


class Cost(Strict):
    """Train `samples` samples for at most `gpuSeconds` GPU-seconds."""

    gpu_seconds: Integer = Field(ge=1, le=10**12, description="Workers' GPUs times seconds of training.")
    samples: Integer = Field(ge=1, le=10**15, description="Of all workers: the data set's size times its epochs.")


def _goals(goal: "Goal") -> int:
    given = (goal.efficiency_percent, goal.speedup, goal.deadline, goal.cost)
    return sum(value is not None for value in given)


class Goal(Ruled):
    """What the job is sized for. Exactly one field."""

    rules = (
        Rule(
            "give exactly one goal: efficiencyPercent, speedup, deadline or cost",
            cel="[has(self.efficiencyPercent), has(self.speedup), has(self.deadline), has(self.cost)]"
            ".filter(given, given).size() == 1",
            holds=lambda goal: _goals(goal) == 1,
        ),
    )

    efficiency_percent: Integer | None = Field(
        None, ge=1, le=100, description="As many GPUs as keep this share of linear speed-up (Lemma 1)."
    )
    speedup: Speedup | None = Field(None, description="As few GPUs as train this many times as fast as one.")
    deadline: Deadline | None = Field(None, description="As few GPUs as train so many samples in so many seconds.")
    cost: Cost | None = Field(None, description="As many GPUs as train so many samples for so many GPU-seconds.")


class Scaling(StrEnum):
    """What stays fixed when workers are added: the global batch (Strong) or the batch per GPU (Weak)."""

    STRONG = "Strong"
    WEAK = "Weak"


def _powers_between(batch: "MiniBatch") -> int:
    return sum(batch.min <= power <= batch.max for power in POWERS_OF_TWO) if batch.min and batch.max else 0


class MiniBatch(Ruled):
    """Samples per GPU and iteration: the user's own `value`, or what to try; by default Muster chooses what to try."""

    rules = (
        Rule(
            "give value, or candidates, or min and max, not several of them",
            cel="[has(self.value), has(self.candidates), has(self.min) || has(self.max)]"
            ".filter(given, given).size() <= 1",
            holds=lambda batch: sum(map(bool, (batch.value, batch.candidates, batch.min or batch.max))) <= 1,
        ),
        Rule(
            "min and max go together",
            cel="has(self.min) == has(self.max)",
            holds=lambda batch: (batch.min is None) == (batch.max is None),
        ),
        Rule(
            "min is above max",
            cel="!has(self.min) || !has(self.max) || self.min <= self.max",
            holds=lambda batch: not (batch.min and batch.max and batch.min > batch.max),
            at=".min",
        ),
        Rule(
            "from min to max there must be 1 to 16 powers of two: those are profiled",
            cel="!has(self.min) || !has(self.max) || self.min > self.max || "
            f"{list(POWERS_OF_TWO)}.filter(power, self.min <= power && power <= self.max).size() in "
            f"{list(range(1, 17))}",
            holds=lambda batch: (
                not (batch.min and batch.max and batch.min <= batch.max) or 1 <= _powers_between(batch) <= 16
            ),
        ),
        Rule(
            "candidates must differ from each other",
            cel="!has(self.candidates) || self.candidates.all(one, self.candidates.exists_one(other, other == one))",
            holds=lambda batch: len(set(batch.candidates or ())) == len(batch.candidates or ()),
            at=".candidates",
        ),
    )

    value: Samples | None = Field(None, description="The user's own mini-batch: it wins.")
    candidates: list[Samples] | None = Field(
        None, min_length=1, max_length=16, description="The mini-batches to profile."
    )
    min: Samples | None = Field(None, description="With max: profile the powers of two between them.")
    max: Samples | None = Field(None, description="With min.")


class Replicas(Strict):
    """A role whose count Muster chooses, unless the user gives it."""

    replicas: Count | None = Field(
        None,
        description="The user's own count: it wins, over maxReplicas too; what Muster recommends stands in the status.",
    )
    max_replicas: Count = Field(64, description="Muster's own choice never goes above this.")
    template: PodTemplate


class Single(Strict):
    """A role of exactly one pod."""

    template: PodTemplate


class Overlap(StrEnum):
    """What an exchange of parameters hides behind: all compute, the backward pass alone, or nothing."""

    FULL = "Full"
    BACKWARD = "Backward"
    NONE = "None"


class Network(Strict):
    """The network between workers and servers. Bandwidths are per second, per node and direction."""

    server_bandwidth: Bandwidth | None = Field(
        None, description="Of a parameter server's node: 10Gbit, 1250MB, 1.25GB or 1.25GiB, per second."
    )
    worker_bandwidth: Bandwidth | None = Field(None, description="Of a worker's node, in the same units.")
    latency_microseconds: Integer | None = Field(
        None, ge=0, le=10_000_000, description="Between a worker and a server, one way."
    )
    overlap: Overlap = Field(
        Overlap.FULL,
        description="What the exchange hides behind. Full: all compute, as where parameters may be one step stale. "
        "Backward: gradients leave layer by layer. None: the script exchanges after it has computed.",
    )
    local_aggregation: bool = Field(
        True, description="The GPUs of one worker add up their gradients before they send them."
    )


class ProfileSource(StrEnum):
    """A profiling pod, a report in a ConfigMap, or an equal job's profile (where there is none, a pod)."""

    POD = "Pod"
    CONFIG_MAP = "ConfigMap"
    REUSE = "Reuse"


class Profile(Ruled):
    """How the job is profiled."""

    rules = (
        Rule(
            "from: ConfigMap needs configMapName, and only it has one",
            cel="(has(self.from) && self.from == 'ConfigMap') == has(self.configMapName)",
            holds=lambda profile: (profile.source == ProfileSource.CONFIG_MAP) == (profile.config_map_name is not None),
            at=".configMapName",
        ),
    )

    source: ProfileSource = Field(ProfileSource.POD, alias="from")
    config_map_name: str | None = Field(
        None,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        description="With from ConfigMap: holds a report under the key report.json.",
    )
    active_deadline_seconds: Integer = Field(
        600, ge=10, le=86_400, description="Clock of the profiling pod, image pull included."
    )
    warmup_steps: Integer = Field(5, ge=0, le=10_000, description="Iterations at each mini-batch before measuring.")
    steps: Integer = Field(
        20, ge=4, le=10_000, description="Iterations measured at each mini-batch, half of them with the loader frozen."
    )


class Workspace(StrEnum):
    """Whether each convolution keeps its workspace, or all share the largest."""

    SEPARATE = "Separate"
    SHARED = "Shared"
    OFF = "Off"


class Convolution(Strict):
    """The choice of convolution algorithms."""

    workspace: Workspace = Workspace.SHARED


class CleanPodPolicy(StrEnum):
    """Which pods go when the job has ended."""

    ALL = "All"
    RUNNING = "Running"
    NONE = "None"


class RunPolicy(Strict):
    """How long, how often, and what is left behind, with the names that batch/v1 and Kubeflow use."""

    backoff_limit: Integer = Field(3, ge=0, le=1000, description="Restarts before the job has failed.")
    active_deadline_seconds: Integer | None = Field(
        None, ge=1, le=10**8, description="The job has failed when it has not ended so long after its start."
    )
    ttl_seconds_after_finished: Integer | None = Field(
        None, ge=0, le=10**8, description="The job is deleted so long after its end. Not given: it is kept."
    )
    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.RUNNING
    suspend: bool = Field(False, strict=True, description="True: no pods; profile and plan stay, running pods go.")
    managed_by: str = Field(
        MANAGED_BY, min_length=1, max_length=63, description="Another controller's name: Muster leaves the job alone."
    )


class SuccessPolicy(StrEnum):
    """Whose success is the job's: the chief's (worker 0's where there is none), or that of all workers."""

    CHIEF = "Chief"
    ALL_WORKERS = "AllWorkers"


class Gang(StrEnum):
    """Which gang scheduler is told that the pods start together or not at all."""

    NONE = "None"
    AUTO = "Auto"
    NATIVE = "Native"
    VOLCANO = "Volcano"
    COSCHEDULING = "Coscheduling"


class Mode(StrEnum):
    """Run the job, or stop after its plan."""

    RUN = "Run"
    RECOMMEND = "Recommend"


def _fixed(field: str) -> Rule:
    return Rule(f"{field} cannot change: create another job", cel=f"self.{field} == oldSelf.{field}", at=f".{field}")


def _same_roles(role: str) -> Rule:
    return Rule(
        f"{role} cannot be added to or removed from a job: create another job",
        cel=f"has(self.{role}) == has(oldSelf.{role})",
    )


def _only_suspended(field: str, *, role: str | None = None) -> Rule:
    absent = f"!has(self.{role}) || !has(oldSelf.{role}) || " if role else ""
    return Rule(
        f"{field} can change only while runPolicy.suspend is true: suspend the job first",
        cel=f"oldSelf.runPolicy.suspend || {absent}self.{field} == oldSelf.{field}",
        at=f".{field}",
    )


def _for_tensorflow(role: str) -> Rule:
    return Rule(
        f"only a job of framework TensorFlow has {role}",
        cel=f"!has(self.{role}) || self.framework == 'TensorFlow'",
        holds=lambda spec: getattr(spec, role) is None or spec.framework == Framework.TENSORFLOW,
        at=f".{role}",
    )


class TrainingJobSpec(Ruled):
    """The desired state of a TrainingJob."""

    rules = (
        _for_tensorflow("chief"),
        _for_tensorflow("evaluator"),
        Rule(
            "the worker's training container needs a command for the profiler to run: the image's own entrypoint is "
            "not known",
            cel="self.profile.from != 'Pod' || self.worker.template.spec.containers"
            f".filter(c, c.name == '{TRAINING_CONTAINER}' || self.worker.template.spec.containers.size() == 1)"
            ".all(c, has(c.command) && c.command.size() > 0)",
            holds=lambda spec: (
                spec.profile.source != ProfileSource.POD or bool(spec.worker.template.training_container.get("command"))
            ),
            at=".worker.template.spec.containers",
        ),
        _fixed("framework"),
        _fixed("successPolicy"),
        _fixed("profile.from"),
        _fixed("runPolicy.managedBy"),
        *(_same_roles(role) for role in ("server", "chief", "evaluator")),
        _only_suspended("worker.template"),
        *(_only_suspended(f"{role}.template", role=role) for role in ("server", "chief", "evaluator")),
        _only_suspended("gang"),
        Rule(
            "mode can change from Recommend to Run, not back",
            cel="self.mode == oldSelf.mode || self.mode == 'Run'",
            at=".mode",
        ),
    )

    mode: Mode = Mode.RUN
    framework: Framework = Framework.GENERIC
    goal: Goal
    scaling: Scaling = Scaling.STRONG
    mini_batch: MiniBatch = Field(default_factory=MiniBatch)
    worker: Replicas
    server: Replicas | None = Field(None, description="Parameter servers. Left out: an all-reduce job.")
    chief: Single | None = Field(None, description="The TensorFlow worker that also writes checkpoints.")
    evaluator: Single | None = Field(
        None, description="A TensorFlow pod outside the cluster that evaluates checkpoints."
    )
    network: Network = Field(default_factory=Network)
    profile: Profile = Field(default_factory=Profile)
    convolution: Convolution = Field(default_factory=Convolution)
    run_policy: RunPolicy = Field(default_factory=RunPolicy)
    success_policy: SuccessPolicy = SuccessPolicy.CHIEF
    gang: Gang = Gang.NONE
