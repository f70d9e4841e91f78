"""The profile report, format `muster.dev/profile/v1`: a public JSON format that `muster_profiler`, or anyone, writes.

It comes out of a user's container, so it is untrusted: every list and string is bounded, every number has a range, and
unknown keys are ignored. Another major version of the format is refused.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muster.api.model import Tolerant

FORMAT = "muster.dev/profile/v1"

Nanoseconds = Annotated[int, Field(ge=0, le=10**15)]
Bytes = Annotated[int, Field(ge=0, le=10**16)]
Name = Annotated[str, Field(max_length=512)]
Note = Annotated[str, Field(max_length=2048)]


class Timing(Tolerant):
    """A time measured over `cycles` iterations; the interval is a 95 % confidence interval of the median.

    A writer may give the median alone (the summary in a termination message does): the rest is then taken to equal it.
    """

    median_nanoseconds: Nanoseconds
    lower_quartile_nanoseconds: Nanoseconds
    upper_quartile_nanoseconds: Nanoseconds
    interval_low_nanoseconds: Nanoseconds
    interval_high_nanoseconds: Nanoseconds
    cycles: int = Field(1, ge=1, le=10**6)

    @model_validator(mode="before")
    @classmethod
    def _spread_or_none(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        median = values.get("medianNanoseconds", values.get("median_nanoseconds"))
        bounds = ("lowerQuartile", "upperQuartile", "intervalLow", "intervalHigh")
        python = ("lower_quartile", "upper_quartile", "interval_low", "interval_high")
        missing = [key for key, name in zip(bounds, python, strict=True) if f"{name}_nanoseconds" not in values]
        return {f"{key}Nanoseconds": median for key in missing} | values


class OverheadParts(Tolerant):
    """The iteration by its steps, as far as they could be told apart: loading, preparation and copying make up the
    overhead; the local update is a part of the compute time, named so that it can be pointed at."""

    load_nanoseconds: Nanoseconds | None = None
    prepare_nanoseconds: Nanoseconds | None = None
    host_to_device_nanoseconds: Nanoseconds | None = None
    update_nanoseconds: Nanoseconds | None = None


class Memory(Tolerant):
    """Peak device memory of each phase of an iteration, and of both."""

    forward_backward_bytes: Bytes | None = None
    optimizer_step_bytes: Bytes | None = None
    peak_bytes: Bytes
    predicted_peak_bytes: Bytes | None = Field(
        None, description="What was predicted for this mini-batch before it was tried, where anything could be."
    )
    margin_bytes: Bytes | None = Field(None, description="To be kept free beside the peak.")
    workspace_bytes: Bytes | None = Field(None, description="Convolution workspaces within the peak, where known.")


class Point(Tolerant):
    """One mini-batch. Where `fits` is false, `problem` says what went wrong and the times may be absent."""

    mini_batch: int = Field(ge=1, le=10**6)
    fits: bool
    problem: Note | None = None
    steady: bool = True
    fetches_per_iteration: int = Field(
        1, ge=0, le=10**6, description="Above 1: gradients are accumulated. 0: no loader was seen."
    )
    compute_time: Timing | None = None
    overhead_time: Timing | None = None
    overhead_parts: OverheadParts | None = None
    memory: Memory | None = None


class Tensor(Tolerant):
    """One parameter tensor, in the framework's order; `bytes` as exchanged."""

    name: Name
    elements: int = Field(ge=0, le=10**13)
    bytes: Bytes
    trainable: bool = True


class Parameters(Tolerant):
    """What is learnt, and what of it is exchanged once per direction and iteration (S_p of Lemma 2)."""

    bytes: Bytes
    exchanged_bytes: Bytes
    tensors: Annotated[list[Tensor], Field(max_length=20_000)] = Field(default_factory=list)
    tensor_count: int | None = Field(
        None, ge=0, le=10**6, description="How many there are, where `tensors` holds the largest alone (in a summary)."
    )


class Device(Tolerant):
    """What the script trained on."""

    kind: Name
    name: Name
    memory_bytes: Bytes
    count: int = Field(1, ge=0, le=1024)


class FrameworkVersion(Tolerant):
    """Whose script it was."""

    name: Name
    version: Name


class Algorithm(Tolerant):
    """One way to compute a convolution: its time, the workspace it needs, and its class (GEMM, FFT, Winograd, ...)."""

    name: Name
    kind: Name
    time_nanoseconds: Nanoseconds
    workspace_bytes: Bytes


class ConvolutionLayer(Tolerant):
    """One pass of one distinct layer shape at one mini-batch; `layers` of the model's layers have it."""

    shape: Name
    direction: Literal["forward", "inputGradient", "weightGradient"]
    mini_batch: int = Field(ge=1, le=10**6)
    layers: int = Field(1, ge=1, le=10_000)
    algorithms: Annotated[list[Algorithm], Field(min_length=1, max_length=64)]
    used: Name | None = Field(None, description="The algorithm that the timed iterations ran with, where known.")


class ConvolutionTrial(Tolerant):
    """The whole step, measured with one setting of the process that changes its convolutions' algorithms; to be held
    against the point of the same mini-batch, which is the script as it is.
    """

    setting: Name = Field(description="cudnn.benchmark, with CUDNN_CONV_WSCAP_DBG=<MiB> or without; channels_last")
    mini_batch: int = Field(ge=1, le=10**6)
    compute_time: Timing
    peak_bytes: Bytes | None = None


class LayerSize(Tolerant):
    """A layer of the model: elements that it puts out for one sample, and its parameters, in elements."""

    name: Name
    outputs: int = Field(ge=0, le=10**13)
    parameters: int = Field(0, ge=0, le=10**13)


class Rate(Tolerant):
    """Bandwidth with a number of streams, in bytes per second, seen from the measuring pod."""

    streams: int = Field(ge=1, le=64)
    up_bytes_per_second: int = Field(ge=1, le=10**14)
    down_bytes_per_second: int = Field(ge=1, le=10**14)
    both_bytes_per_second: int | None = Field(
        None, ge=1, le=10**14, description="Up and down at the same time, added up."
    )


class Latency(Tolerant):
    """Of one message of that size: half a round trip, with the message's own transfer."""

    bytes: Bytes
    nanoseconds: Nanoseconds


class NetworkMeasurement(Tolerant):
    """The network between workers and a server."""

    rates: Annotated[list[Rate], Field(max_length=8)] = Field(default_factory=list)
    fan_in_bytes_per_second: int | None = Field(None, ge=1, le=10**14)
    latency_nanoseconds: Nanoseconds | None = Field(None, description="Of the smallest message that was measured.")
    latencies: Annotated[list[Latency], Field(max_length=16)] = Field(default_factory=list)


class ReportWarning(Tolerant):
    """Something the reader of the numbers must know."""

    reason: Annotated[str, Field(max_length=64, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    message: Note


class LargestMiniBatch(Tolerant):
    """The largest mini-batch that fits in memory with its margin."""

    mini_batch: int = Field(ge=1, le=10**6)
    verified: bool = Field(description="Tried, with at most a tenth between it and what is predicted to be too large.")


class Report(Tolerant):
    """All that one profile learnt."""

    format: Literal["muster.dev/profile/v1"]
    device: Device
    framework: FrameworkVersion
    parameters: Parameters
    points: Annotated[list[Point], Field(min_length=1, max_length=16)]
    mini_batch_applied: bool = Field(
        True, description="False: the command never mentions MUSTER_MINIBATCH, so the script kept its own batch size."
    )
    largest_mini_batch: LargestMiniBatch | None = Field(
        None, description="Absent where it is unknown, or far above every mini-batch that was tried."
    )
    convolutions: Annotated[list[ConvolutionLayer], Field(max_length=4096)] = Field(default_factory=list)
    convolution_trials: Annotated[list[ConvolutionTrial], Field(max_length=64)] = Field(default_factory=list)
    layers: Annotated[list[LayerSize], Field(max_length=20_000)] = Field(
        default_factory=list, description="For the layer formula of memory, the cross-check of the measured peak."
    )
    network: NetworkMeasurement | None = None
    warnings: Annotated[list[ReportWarning], Field(max_length=32)] = Field(default_factory=list)
    environment: Annotated[dict[Name, Note], Field(max_length=64)] = Field(default_factory=dict)


def schema() -> str:
    """The format as a JSON Schema: `docs/report.schema.json`, printed by `python -m muster.api.report`."""
    whole = Report.model_json_schema(by_alias=True)
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Muster profile report, v1"} | whole
    timing = whole["$defs"]["Timing"]
    timing["required"] = ["medianNanoseconds"]
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
