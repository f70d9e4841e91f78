"""The measured data in `benchmarks/data`, as samples and rows."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.sizing.prediction import Configuration, Sample

DATA = Path(__file__).parent.parent / "data"

WORKLOADS = {
    "cifar10": "ResNet-18, CIFAR-10",
    "imagenet": "ResNet-50, ImageNet",
    "ncf": "NeuMF, MovieLens",
    "yolov3": "YOLOv3, PASCAL VOC",
}


@dataclass(frozen=True)
class Run:
    """One measurement; `layout` is the same for runs that only differ in the order of their nodes."""

    sample: Sample
    layout: tuple[int, ...]


def runs(workload: str) -> list[Run]:
    """All measurements of one workload of the Pollux data."""
    return [*_placements(workload), *_scalability(workload)]


def _placements(workload: str) -> Iterator[Run]:
    for row in _rows(f"pollux/{workload}.placements.csv"):
        layout = tuple(sorted(int(gpus) for gpus in row["placement"]))
        yield Run(_sample(row, sum(layout), len(layout), max(layout)), layout)


def _scalability(workload: str) -> Iterator[Run]:
    for row in _rows(f"pollux/{workload}.scalability.csv"):
        nodes, gpus = int(row["num_nodes"]), int(row["num_replicas"])
        whole, rest = divmod(gpus, nodes)
        yield Run(_sample(row, gpus, nodes, whole + (rest > 0)), (whole,) * (nodes - rest) + (whole + 1,) * rest)


def _sample(row: dict[str, str], gpus: int, nodes: int, densest: int) -> Sample:
    configuration = Configuration(int(row["local_bsz"]), gpus, nodes, densest=densest)
    return Sample(configuration, float(row["step_time"]), float(row["sync_time"]))


@dataclass(frozen=True)
class Throughput:
    """One row of TensorFlow's table."""

    model: str
    minibatch: int
    gpus: int
    images_per_second: float

    @property
    def iteration(self) -> float:
        """Seconds."""
        return self.minibatch * self.gpus / self.images_per_second


def tensorflow_servers() -> list[Throughput]:
    """TensorFlow's runs with parameter servers on 8-GPU instances."""
    return [
        Throughput(row["model"], int(row["batch_per_gpu"]), int(row["gpus"]), float(row["images_per_s"]))
        for row in _rows("tf-benchmarks.csv")
        if row["machine"] == "ec2-p2.8xlarge-ps"
    ]


def tensor_sizes() -> dict[str, list[int]]:
    """Elements of each tensor of 13 models."""
    sizes: dict[str, list[int]] = json.loads((DATA / "tensor-sizes.json").read_text())
    return {model: elements for model, elements in sizes.items() if model != "alexnet_fp16"}


def shaped_servers() -> dict[str, dict[int, float]]:
    """Seconds of an iteration by the workers' links and the number of servers."""
    seconds: dict[str, dict[int, float]] = {}
    for row in _rows("servers.csv"):
        seconds.setdefault(row["workers_linked"], {})[int(row["servers"])] = float(row["iteration_s"])
    return seconds


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        yield from csv.DictReader(file)
