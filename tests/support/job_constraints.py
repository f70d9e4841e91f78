"""Every constraint that spans fields, with one spec that passes and one that is refused, by API server and models.

A spec is written as a merge patch (RFC 7386) onto the smallest job.
"""

import copy
from dataclasses import dataclass
from typing import Any

from muster.api.labels import API_VERSION, KIND, LONGEST_JOB_NAME

Patch = dict[str, Any]

CONTAINER: Patch = {"name": "train", "image": "train:1", "command": ["python", "train.py"]}
TEMPLATE: Patch = {"spec": {"containers": [CONTAINER]}}
SMALLEST: Patch = {"goal": {"efficiencyPercent": 80}, "worker": {"template": TEMPLATE}}


def merged(target: Any, patch: Any) -> Any:
    """`target` with an RFC 7386 merge patch applied."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def spec(patch: Patch) -> Patch:
    """The smallest job's spec with `patch`."""
    result: Patch = merged(SMALLEST, patch)
    return result


def job(patch: Patch, name: str = "resnet") -> Patch:
    """A TrainingJob of the smallest spec with `patch`."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec(patch)}


def containers(*changes: Patch) -> Patch:
    """A patch that gives the worker these containers, each a change of the usual one."""
    return {"worker": {"template": {"spec": {"containers": [merged(CONTAINER, change) for change in changes]}}}}


def gpus(amount: object) -> Patch:
    """A patch that gives the worker so many GPUs."""
    return containers({"resources": {"limits": {"nvidia.com/gpu": amount}}})


@dataclass(frozen=True)
class Constraint:
    """What is refused at `field`, with `message`, and its nearest neighbour that passes."""

    title: str
    passes: Patch
    refused: Patch
    field: str
    message: str


ONE_GOAL = "give exactly one goal: efficiencyPercent, speedup, deadline or cost"
ONE_WAY = "give value, or candidates, or min and max, not several of them"
POWERS = "from min to max there must be 1 to 16 powers of two"
TRAINER = "of several containers one must be named train"
COMMAND = "the worker's training container needs a command for the profiler to run"
SPEEDUP = "write a speed-up above 0"
BANDWIDTH = "write a bandwidth of 8kbit to 80Tbit"
WHOLE_GPUS = "nvidia.com/gpu is a whole number of GPUs"
CONFIG_MAP = "from: ConfigMap needs configMapName, and only it has one"

FULL_DEADLINE = {"seconds": 3600, "samples": 10**6}
FULL_COST = {"gpuSeconds": 3600, "samples": 10**6}


def _goal(**goal: object) -> Patch:
    return {"goal": {"efficiencyPercent": None, **goal}}


def _batch(**batch: object) -> Patch:
    return {"miniBatch": batch}


def _bandwidth(text: str) -> Patch:
    return {"network": {"serverBandwidth": text}}


CONSTRAINTS = (
    Constraint("no goal", {}, _goal(), "spec.goal", ONE_GOAL),
    Constraint("two goals", _goal(speedup="2"), {"goal": {"speedup": "2"}}, "spec.goal", ONE_GOAL),
    Constraint(
        "deadline and cost",
        _goal(deadline=FULL_DEADLINE),
        _goal(deadline=FULL_DEADLINE, cost=FULL_COST),
        "spec.goal",
        ONE_GOAL,
    ),
    Constraint("a speed-up of 0", _goal(speedup="0.5"), _goal(speedup="0.0"), "spec.goal.speedup", SPEEDUP),
    Constraint("a negative speed-up", _goal(speedup="7.5"), _goal(speedup="-7.5"), "spec.goal.speedup", SPEEDUP),
    Constraint("a speed-up in words", _goal(speedup="10"), _goal(speedup="ten"), "spec.goal.speedup", SPEEDUP),
    Constraint(
        "a mini-batch and candidates", _batch(value=64), _batch(value=64, candidates=[32]), "spec.miniBatch", ONE_WAY
    ),
    Constraint(
        "candidates and a range",
        _batch(candidates=[32]),
        _batch(candidates=[32], min=8, max=64),
        "spec.miniBatch",
        ONE_WAY,
    ),
    Constraint("min without max", _batch(min=8, max=64), _batch(min=8), "spec.miniBatch", "min and max go together"),
    Constraint("max without min", _batch(min=64, max=64), _batch(max=64), "spec.miniBatch", "min and max go together"),
    Constraint(
        "min above max", _batch(min=32, max=64), _batch(min=64, max=32), "spec.miniBatch.min", "min is above max"
    ),
    Constraint("no power of two in the range", _batch(min=5, max=8), _batch(min=5, max=7), "spec.miniBatch", POWERS),
    Constraint("17 powers of two", _batch(min=1, max=65535), _batch(min=1, max=65536), "spec.miniBatch", POWERS),
    Constraint(
        "a candidate twice",
        _batch(candidates=[32, 64]),
        _batch(candidates=[32, 32]),
        "spec.miniBatch.candidates",
        "candidates must differ from each other",
    ),
    *(
        Constraint(
            f"a bandwidth of {bad}", _bandwidth(good), _bandwidth(bad), "spec.network.serverBandwidth", BANDWIDTH
        )
        for good, bad in [
            ("10Gbit", "10 Gbit"),
            ("1.25GiB", "1.25gib"),
            ("8kbit", "7.999kbit"),
            ("80Tbit", "80.001Tbit"),
            ("1250MB", "0MB"),
            ("1000B", "-1000B"),
            ("1TiB", "1TiB/s"),
            ("100Mbit", "100"),
        ]
    ),
    Constraint(
        "a worker's bandwidth without a unit",
        {"network": {"workerBandwidth": "1.5Gbit"}},
        {"network": {"workerBandwidth": "fast"}},
        "spec.network.workerBandwidth",
        BANDWIDTH,
    ),
    Constraint(
        "a report in no ConfigMap",
        {"profile": {"from": "ConfigMap", "configMapName": "report"}},
        {"profile": {"from": "ConfigMap"}},
        "spec.profile",
        CONFIG_MAP,
    ),
    Constraint(
        "a ConfigMap that is not read",
        {"profile": {"from": "Pod"}},
        {"profile": {"configMapName": "report"}},
        "spec.profile",
        CONFIG_MAP,
    ),
    Constraint(
        "a ConfigMap beside a reused profile",
        {"profile": {"from": "Reuse"}},
        {"profile": {"from": "Reuse", "configMapName": "report"}},
        "spec.profile",
        CONFIG_MAP,
    ),
    *(
        Constraint(
            f"{role} without TensorFlow",
            {"framework": "TensorFlow", role: {"template": TEMPLATE}},
            {"framework": "PyTorch", role: {"template": TEMPLATE}},
            "spec",
            f"only a job of framework TensorFlow has {role}",
        )
        for role in ("chief", "evaluator")
    ),
    Constraint(
        "two containers, none of them train",
        containers({}, {"name": "sidecar"}),
        containers({"name": "main"}, {"name": "sidecar"}),
        "spec.worker.template",
        TRAINER,
    ),
    Constraint(
        "two server containers, none of them train",
        {"server": {"template": {"spec": {"containers": [{"name": "main"}]}}}},
        {"server": {"template": {"spec": {"containers": [{"name": "main"}, {"name": "sidecar"}]}}}},
        "spec.server.template",
        TRAINER,
    ),
    Constraint("no command", containers({}), containers({"command": None}), "spec", COMMAND),
    Constraint("an empty command", containers({"command": ["true"]}), containers({"command": []}), "spec", COMMAND),
    Constraint(
        "no command, beside a sidecar that has one",
        containers({}, {"name": "sidecar", "command": None}),
        containers({"command": None}, {"name": "sidecar"}),
        "spec",
        COMMAND,
    ),
    Constraint(
        "no command for the profiler to run",
        {**containers({"command": None}), "profile": {"from": "ConfigMap", "configMapName": "report"}},
        containers({"command": None}),
        "spec",
        COMMAND,
    ),
    Constraint(
        "half a GPU",
        gpus(1),
        gpus("500m"),
        "spec.worker.template.spec.containers[0].resources.limits.nvidia.com/gpu",
        WHOLE_GPUS,
    ),
    Constraint(
        "GPUs in kilo",
        gpus("8"),
        gpus("1k"),
        "spec.worker.template.spec.containers[0].resources.limits.nvidia.com/gpu",
        WHOLE_GPUS,
    ),
    Constraint(
        "negative GPUs",
        gpus(0),
        gpus(-1),
        "spec.worker.template.spec.containers[0].resources.limits.nvidia.com/gpu",
        WHOLE_GPUS,
    ),
)


@dataclass(frozen=True)
class Change:
    """What a running job refuses with `message`, a change that it allows beside it, and the job before (a patch)."""

    title: str
    allowed: Patch
    refused: Patch
    field: str
    message: str
    before: Patch | None = None


FIXED = "cannot change: create another job"
SUSPEND_FIRST = "can change only while runPolicy.suspend is true: suspend the job first"
OTHER_IMAGE = containers({"image": "train:2"})
SERVERS: Patch = {"server": {"template": {"spec": {"containers": [{"name": "server", "image": "train:1"}]}}}}
OTHER_SERVERS: Patch = {"server": {"template": {"spec": {"containers": [{"name": "server", "image": "train:2"}]}}}}
CHIEF: Patch = {"framework": "TensorFlow", "chief": {"template": TEMPLATE}, "evaluator": {"template": TEMPLATE}}
SUSPEND: Patch = {"runPolicy": {"suspend": True}}


def _other(role: str) -> Patch:
    return {role: {"template": {"spec": {"containers": [merged(CONTAINER, {"image": "train:2"})]}}}}


CHANGES = (
    Change("framework", {"scaling": "Weak"}, {"framework": "MXNet"}, "spec.framework", f"framework {FIXED}"),
    Change(
        "success policy",
        {"goal": {"efficiencyPercent": 70}},
        {"successPolicy": "AllWorkers"},
        "spec.successPolicy",
        f"successPolicy {FIXED}",
    ),
    Change(
        "profile source",
        {"profile": {"steps": 40}},
        {"profile": {"from": "Reuse"}},
        "spec.profile.from",
        f"profile.from {FIXED}",
    ),
    Change(
        "managed by",
        {
            "runPolicy": {
                "backoffLimit": 5,
                "activeDeadlineSeconds": 60,
                "ttlSecondsAfterFinished": 0,
                "cleanPodPolicy": "All",
            }
        },
        {"runPolicy": {"managedBy": "example.com/other"}},
        "spec.runPolicy.managedBy",
        f"runPolicy.managedBy {FIXED}",
    ),
    Change(
        "servers added", {"worker": {"replicas": 4}}, SERVERS, "spec", "server cannot be added to or removed from a job"
    ),
    Change(
        "servers removed",
        {"server": {"maxReplicas": 2}},
        {"server": None},
        "spec",
        "server cannot be added to or removed",
        SERVERS,
    ),
    Change(
        "chief removed",
        {"network": {"latencyMicroseconds": 9}},
        {"chief": None},
        "spec",
        "chief cannot be added to or removed",
        CHIEF,
    ),
    Change(
        "evaluator removed",
        {"miniBatch": {"value": 8}},
        {"evaluator": None},
        "spec",
        "evaluator cannot be added to or",
        CHIEF,
    ),
    Change(
        "worker's template",
        {"worker": {"maxReplicas": 8}},
        OTHER_IMAGE,
        "spec.worker.template",
        f"worker.template {SUSPEND_FIRST}",
    ),
    Change(
        "server's template",
        {"server": {"replicas": 2}},
        OTHER_SERVERS,
        "spec.server.template",
        f"server.template {SUSPEND_FIRST}",
        SERVERS,
    ),
    Change(
        "chief's template", SUSPEND, _other("chief"), "spec.chief.template", f"chief.template {SUSPEND_FIRST}", CHIEF
    ),
    Change(
        "evaluator's template",
        SUSPEND,
        _other("evaluator"),
        "spec.evaluator.template",
        f"evaluator.template {SUSPEND_FIRST}",
        CHIEF,
    ),
    Change(
        "a field of the pod that Muster does not read",
        {"convolution": {"workspace": "Off"}},
        {"worker": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}},
        "spec.worker.template",
        f"worker.template {SUSPEND_FIRST}",
    ),
    Change("gang", {}, {"gang": "Auto"}, "spec.gang", f"gang {SUSPEND_FIRST}"),
    Change(
        "back to Recommend",
        {"mode": "Run"},
        {"mode": "Recommend"},
        "spec.mode",
        "mode can change from Recommend to Run",
    ),
)
ALLOWED_WHEN_SUSPENDED = (
    OTHER_IMAGE,
    {**OTHER_IMAGE, "runPolicy": {"suspend": False}},
    {"worker": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}},
    {"gang": "Auto"},
)

GOOD_NAMES = ("a", "resnet-50", "a" * LONGEST_JOB_NAME)
BAD_NAMES = ("1job", "a.b", "job-", "a" * (LONGEST_JOB_NAME + 1), "a" * 63)
