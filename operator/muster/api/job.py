"""The TrainingJob as a user writes it. Field descriptions here are what `kubectl explain` prints."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from muster.api.bandwidth import PATTERN as BANDWIDTH_PATTERN
from muster.api.bandwidth import bytes_per_second
from muster.api.labels import GPU_RESOURCE, MANAGED_BY, TRAINING_CONTAINER
from muster.api.model import Strict


def _bandwidth(text: str) -> str:
    bytes_per_second(text)
    return text


Count = Annotated[int, Field(ge=1, le=512)]
"""Of workers or servers."""
Samples = Annotated[int, Field(ge=1, le=1_000_000)]
"""A mini-batch: samples per GPU and iteration."""
Bandwidth = Annotated[str, Field(pattern=BANDWIDTH_PATTERN, max_length=32), AfterValidator(_bandwidth)]


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

    seconds: int = Field(ge=1, le=100_000_000)
    samples: int = Field(ge=1, le=10**15)


class Cost(Strict):
    """Train `samples` samples for at most `gpuSeconds` GPU-seconds."""

    gpu_seconds: int = Field(ge=1, le=10**12)
    samples: int = Field(ge=1, le=10**15)


class Goal(Strict):
    """What the job is sized for. Exactly one field."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "[has(self.efficiencyPercent), has(self.speedup), has(self.deadline), has(self.cost)].filter(x, x).size() == 1",
                    "message": "give exactly one goal: efficiencyPercent, speedup, deadline or cost",
                }
            ]
        }
    )

    efficiency_percent: int | None = Field(
        None, ge=1, le=100, description="As many GPUs as keep this share of linear speed-up (Lemma 1)."
    )
    speedup: str | None = Field(
        None,
        pattern=r"^[0-9]{1,4}(\.[0-9]{1,3})?$",
        max_length=8,
        description="As few GPUs as train this many times as fast as one.",
    )
    deadline: Deadline | None = Field(None, description="As few GPUs as train so many samples in so many seconds.")
    cost: Cost | None = Field(None, description="As many GPUs as train so many samples for so many GPU-seconds.")

    @model_validator(mode="after")
    def _exactly_one(self) -> "Goal":
        if len(self.model_fields_set & {"efficiency_percent", "speedup", "deadline", "cost"}) != 1:
            raise ValueError("give exactly one goal: efficiencyPercent, speedup, deadline or cost")
        if self.speedup is not None and float(self.speedup) <= 0:
            raise ValueError("speedup must be above 0")
        return self


class Scaling(StrEnum):
    """What stays fixed when workers are added: the global batch (Strong) or the batch per GPU (Weak)."""

    STRONG = "Strong"
    WEAK = "Weak"


class MiniBatch(Strict):
    """Samples per GPU and iteration: the user's own `value`, or what to try."""

    value: Samples | None = Field(None, description="The user's own mini-batch: it wins.")
    candidates: list[Samples] | None = Field(
        None, min_length=1, max_length=16, description="The mini-batches to profile."
    )
    min: Samples | None = Field(None, description="With max: profile the powers of two between them.")
    max: Samples | None = None


class TemplateMetadata(Strict):
    """Labels and annotations of a pod template; all else about its metadata is Muster's."""

    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(default_factory=dict, max_length=64)
    annotations: dict[str, Annotated[str, Field(max_length=4096)]] = Field(default_factory=dict, max_length=64)


class PodTemplate(Strict):
    """A pod template as in a Deployment. `spec` is an ordinary pod spec, kept whole."""

    metadata: TemplateMetadata = Field(default_factory=TemplateMetadata)
    spec: dict[str, Any]

    @property
    def training_container(self) -> dict[str, Any]:
        """The container named `train`, or else the only one; LookupError where neither exists."""
        containers: list[dict[str, Any]] = self.spec.get("containers") or []
        named = [container for container in containers if container.get("name") == TRAINING_CONTAINER]
        if not named and len(containers) != 1:
            raise LookupError(f"spec.containers: name one of the {len(containers)} containers {TRAINING_CONTAINER!r}")
        return (named or containers)[0]

    @property
    def gpus(self) -> int:
        """GPUs that one pod's training container holds; 0 on a CPU."""
        resources = self.training_container.get("resources") or {}
        amount = (resources.get("limits") or {}).get(
            GPU_RESOURCE, (resources.get("requests") or {}).get(GPU_RESOURCE, 0)
        )
        return int(amount)


class Replicas(Strict):
    """A role whose count Muster chooses, unless the user gives it."""

    replicas: Count | None = Field(
        None, description="The user's own count: it wins, the recommendation stands beside it in the status."
    )
    max_replicas: Count = Field(64, description="The plan never goes above this.")
    template: PodTemplate


class Single(Strict):
    """A role of exactly one pod."""

    template: PodTemplate


class Network(Strict):
    """What is not given here is measured while profiling. Per second, per node and direction."""

    server_bandwidth: Bandwidth | None = None
    worker_bandwidth: Bandwidth | None = None
    latency_microseconds: int | None = Field(None, ge=0, le=10_000_000)


class ProfileSource(StrEnum):
    """Where the profile comes from."""

    POD = "Pod"
    CONFIG_MAP = "ConfigMap"
    REUSE = "Reuse"


class Profile(Strict):
    """How the job is profiled."""

    source: ProfileSource = Field(ProfileSource.POD, alias="from")
    config_map_name: str | None = Field(
        None, max_length=253, description="With from ConfigMap: holds a report under the key report.json."
    )
    active_deadline_seconds: int = Field(
        600, ge=10, le=86_400, description="Clock of the profiling pod, image pull included."
    )
    warmup_steps: int = Field(5, ge=0, le=10_000)
    steps: int = Field(
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

    backoff_limit: int = Field(3, ge=0, le=1000, description="Restarts before the job has failed.")
    active_deadline_seconds: int | None = Field(None, ge=1, le=10**8)
    ttl_seconds_after_finished: int | None = Field(None, ge=0, le=10**8)
    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.RUNNING
    suspend: bool = False
    managed_by: str = Field(MANAGED_BY, max_length=63)


class SuccessPolicy(StrEnum):
    """Whose success is the job's."""

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


class TrainingJobSpec(Strict):
    """The desired state of a TrainingJob."""

    mode: Mode = Mode.RUN
    framework: Framework = Framework.GENERIC
    goal: Goal
    scaling: Scaling = Scaling.STRONG
    mini_batch: MiniBatch = Field(default_factory=MiniBatch)
    worker: Replicas
    server: Replicas | None = Field(None, description="Parameter servers. Left out: an all-reduce job.")
    chief: Single | None = None
    evaluator: Single | None = None
    network: Network = Field(default_factory=Network)
    profile: Profile = Field(default_factory=Profile)
    convolution: Convolution = Field(default_factory=Convolution)
    run_policy: RunPolicy = Field(default_factory=RunPolicy)
    success_policy: SuccessPolicy = SuccessPolicy.CHIEF
    gang: Gang = Gang.NONE
