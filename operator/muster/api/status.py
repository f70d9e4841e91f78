"""The status of a TrainingJob: everything that was decided, nothing else. Bounded, no floats, units in the names."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, computed_field

from muster.api.model import Text, Time, Tolerant, Whole


class ConditionType(StrEnum):
    """Additive conditions; there is no phase machine."""

    PROFILED = "Profiled"
    SIZED = "Sized"
    SUSPENDED = "Suspended"
    PODS_READY = "PodsReady"
    COMPLETE = "Complete"
    FAILED = "Failed"


class Condition(Tolerant):
    """A `metav1.Condition`."""

    type: str = Field(max_length=64)
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(max_length=64, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    message: Text = ""
    observed_generation: int = Field(0, ge=0)
    last_transition_time: Time


class ReplicaStatus(Tolerant):
    """Pods of one role in the present attempt."""

    desired: int = 0
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = Field(
        "",
        max_length=2048,
        pattern=r"^([0-9]{1,3}(-[0-9]{1,3})?(,[0-9]{1,3}(-[0-9]{1,3})?)*)?$",
        description="Indexes that are done in the present attempt, as 0,3-5; remembered when their pods are gone.",
    )

    @computed_field(description="Ready or done, of those desired: 3/4. A printer column shows one field.")  # type: ignore[prop-decorator]
    @property
    def summary(self) -> Annotated[str, Field(max_length=16)]:
        return f"{min(self.ready + self.succeeded, self.desired)}/{self.desired}"


class DeviceStatus(Tolerant):
    """What the profile ran on."""

    name: str = Field(max_length=512)
    memory_bytes: int


class ProfilePoint(Tolerant):
    """One mini-batch of the profile."""

    mini_batch: int
    fits: bool
    compute_time_microseconds: int | None = None
    overhead_time_microseconds: int | None = None
    peak_memory_bytes: int | None = None
    problem: Text | None = None


class ProfileStatus(Tolerant):
    """A summary of the profile; the whole report lies in the pod's log and in a ConfigMap that the job owns."""

    source: str = Field(max_length=64)
    digest: str = Field(max_length=71, description="sha256 of the report.")
    completion_time: Time
    device: DeviceStatus
    parameter_bytes: int
    largest_tensor_bytes: int
    tensors: int
    server_bandwidth_bytes_per_second: int | None = None
    worker_bandwidth_bytes_per_second: int | None = None
    largest_mini_batch: int | None = Field(
        None, description="That fits in memory; absent where it is unknown, or far above those profiled."
    )
    points: list[ProfilePoint] = Field(default_factory=list, max_length=16)


class Choice(Tolerant):
    """One number of the plan: what is used, what the rules recommend, which bound decided, and why in one sentence."""

    value: int
    recommended: int
    limited_by: str = Field(max_length=64, pattern=r"^[A-Z][A-Za-z0-9]*$")
    message: Text
    recommended_low: int | None = Field(None, description="The fewest within the intervals of the measured times.")
    recommended_high: int | None = Field(None, description="The most within the intervals of the measured times.")


class Tradeoff(Tolerant):
    """What workspace memory buys: a point that no other choice of algorithms beats in both."""

    workspace_bytes: int
    saved_percent: int


class ConvolutionPlan(Tolerant):
    """The chosen convolution algorithms, as one workspace limit for the whole process."""

    workspace_limit_bytes: int
    saved_percent: int = Field(description="Of the convolutions' time with as little workspace as can be.")
    tradeoff: list[Tradeoff] = Field(default_factory=list, max_length=16)
    message: Text = ""


class Prediction(Tolerant):
    """What the plan will do. The interval, where given, is of the iteration time."""

    iteration_time_microseconds: Whole
    samples_per_second: Whole
    efficiency_percent: Whole
    speedup: str = Field(max_length=16)
    iteration_time_low_microseconds: Whole | None = None
    iteration_time_high_microseconds: Whole | None = None


class Bottleneck(Tolerant):
    """The step of the iteration that costs most beyond compute, and what would help."""

    step: str = Field(max_length=64)
    exposed_microseconds: Whole
    message: Text
    remedy: Text


class Alternative(Tolerant):
    """Another way to run the same job."""

    topology: str = Field(max_length=64)
    workers: int = 0
    servers: int
    mini_batch: int = 0
    predicted: Prediction
    message: Text


class PlanWarning(Tolerant):
    """Something that a reader of the plan must know."""

    reason: Annotated[str, Field(max_length=64, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    message: Text


class Plan(Tolerant):
    """What Muster chose and why."""

    inputs: str = Field(max_length=71, description="sha256 of everything that the plan was computed from.")
    mini_batch: Choice
    workers: Choice
    servers: Choice
    gpus_per_worker: int = 0
    one_gpu_mini_batch: int = Field(
        0, description="The mini-batch that was chosen on one GPU; with strong scaling all of them share it out."
    )
    global_batch: int = Field(0, description="Samples of one iteration on all GPUs together.")
    nodes: int | None = Field(None, description="The fewest nodes whose GPUs hold the workers.")
    convolution: ConvolutionPlan | None = None
    predicted: Prediction
    bottleneck: Bottleneck | None = None
    alternatives: list[Alternative] = Field(default_factory=list, max_length=8)
    warnings: list[PlanWarning] = Field(default_factory=list, max_length=16)


class TrainingJobStatus(Tolerant):
    """The observed and decided state of a TrainingJob."""

    observed_generation: int = 0
    state: str = Field("", max_length=64, description="A summary for people; programs read the conditions.")
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    start_time: Time | None = None
    completion_time: Time | None = None
    attempt: int = Field(0, ge=0, description="The present attempt, from 1; 0 before the first.")
    attempt_start_time: Time | None = Field(None, description="When the present attempt first had all of its pods.")
    restarts: int = Field(0, ge=0, description="Restarts that counted against backoffLimit.")
    disruptions: int = Field(0, ge=0, description="Restarts that did not count: eviction, preemption, a lost node.")
    backoff_until: Time | None = Field(None, description="No pod is made before.")
    replaced_pods: list[Annotated[str, Field(max_length=64)]] = Field(
        default_factory=list,
        max_length=64,
        description="Uids of the pods of this attempt that were last replaced alone: none is counted twice.",
    )
    workers: ReplicaStatus = Field(default_factory=ReplicaStatus)
    servers: ReplicaStatus = Field(default_factory=ReplicaStatus)
    chief: ReplicaStatus | None = None
    evaluator: ReplicaStatus | None = None
    scheduler: ReplicaStatus | None = None
    profile: ProfileStatus | None = None
    plan: Plan | None = None
    planned_for: str = Field(
        "",
        max_length=71,
        description="sha256 of what the plan answers in the spec; after a change the next attempt is planned anew.",
    )
