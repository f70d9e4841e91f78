"""TrainingJobs drawn from the CRD's own schema: most of them near to what the API server takes, many of them hostile.

A value is drawn for each field that the schema has; what only rules say is mended afterwards, or no job would get past
one of them; then up to three places are spoilt. A plain generator and not Hypothesis, which takes 50 times as long for
documents of this size: a job is known by its seed.
"""

import copy
import functools
from collections.abc import Iterator
from random import Random
from typing import Any

from muster.api import crd
from muster.api.labels import API_VERSION, KIND, LONGEST_JOB_NAME

SPEC = crd.job_schema()["properties"]["spec"]

QUANTITIES = ["1", "0", "-0", "-1", "500m", "1k", "8Gi", "1e3", "1e400", "1e-400", "0x10", "٣", "NaN", "", "9" * 40]
SPEEDUPS = ["7.5", "1", "0.001", "9999.999", "2"] * 8 + ["0", "-0", "1e3", "NaN", "٣", "1\n"]
BANDWIDTHS = ["10Gbit", "1250MB", "1.25GiB", "8kbit", "80Tbit"] * 8 + ["0MB", "10 Gbit", "1e400GB", "NaNGbit", "٣Gbit"]
GPUS = [0, 1, 8, "1", "8", "9999"] * 30 + QUANTITIES
WORDS = [
    *("python", "train.py", "train", "a=b", "PATH", "MUSTER_ROLE", "MUSTER_WORKERS", "TF_CONFIG", "team", "a/b/c"),
    *("$(MUSTER_MINIBATCH)", "$$(MUSTER_MINIBATCH)", "$(MUSTER_MINIBATCH", "$(MUSTER_WORKER_HOSTS)", "muster.dev/job"),
    *(" ", "\n", "\x00", "\u202edlrow", "\ufeff", "é" * 40, "🙂" * 40, "a" * 5000, "kueue.x-k8s.io/queue-name"),
]
LONG = ["a" * 131_072, "é" * 131_072]
HOSTILE = [
    *(None, True, False, 0, -1, 80.0, -0.0, 1.5, 2**31, 2**63, -(2**63) - 1, 10**30, 1e308),
    *("", "0", "-0", "1e400", "NaN", "true", "null", "\x00", "a" * 64, "a" * 254, "é" * 140_000),
    *([], {}, [None], [[]], ["a", "a"], {"": ""}, {"a": None}),
    functools.reduce(lambda deep, _: {"a": deep}, range(90), {}),
]
_OPEN_OF_POD = ["volumes", "initContainers", "securityContext", "hostname", "restartPolicy", "affinity", "nodeSelector"]
_OPEN_OF_CONTAINER = ["volumeMounts", "ports", "securityContext", "livenessProbe", "lifecycle", "envFrom"]


def random_job(seed: int) -> dict[str, Any]:
    """A whole TrainingJob as a user would send it; always the same for one seed."""
    chance = Random(seed)
    spec = _value(chance, SPEC)
    _mend(spec, alone=chance.random() < 0.5)
    for _ in range(chance.choice([0, 0, 0, 0, 1, 1, 2, 3])):
        _spoil(chance, spec)
    name = chance.choice(["job", "a", "a" * LONGEST_JOB_NAME])
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def _value(chance: Random, schema: dict[str, Any]) -> Any:
    """What the schema lets through, and of what it leaves open both what makes sense and what does not."""
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "x-kubernetes-int-or-string" in schema:
        return chance.choice(GPUS)
    match schema["type"]:
        case "boolean":
            return chance.random() < 0.5
        case "integer":
            return _integer(chance, schema["minimum"], schema["maximum"])
        case "string":
            return _text(chance, schema)
        case "array":
            return [_value(chance, schema["items"]) for _ in range(chance.randint(schema.get("minItems", 0), 3))]
        case _:
            return _object(chance, schema)


def _integer(chance: Random, low: int, high: int) -> int:
    if high == 512 and chance.random() < 0.99:  # a job of a thousand pods is drawn now and then, not each time
        return chance.randint(1, 6)
    return chance.choice([low, high, chance.randint(low, high), chance.randint(low, min(high, low + 100))])


def _text(chance: Random, schema: dict[str, Any]) -> str:
    longest, shortest = schema["maxLength"], schema.get("minLength", 0)
    if "pattern" in schema:
        return chance.choice(["train", "a", "a-1", "a" * longest])
    if longest in (8, 32):
        return chance.choice(SPEEDUPS if longest == 8 else BANDWIDTHS)
    if longest > 100_000 and chance.random() < 0.01:
        return chance.choice(LONG)
    return (
        chance.choice(WORDS)[:longest] if chance.random() < 0.95 else "x" * chance.choice([shortest, min(longest, 80)])
    )


def _object(chance: Random, schema: dict[str, Any]) -> dict[str, Any]:
    if "additionalProperties" in schema:
        keys = chance.sample(WORDS, chance.choice([0, 0, 0, 1, 3]))
        return {key: _value(chance, schema["additionalProperties"]) for key in keys}
    fields, required = schema.get("properties", {}), schema.get("required", ())
    often = chance.choice([0.1, 0.4, 0.8])
    made = {
        name: _value(chance, field) for name, field in fields.items() if name in required or chance.random() < often
    }
    if "containers" in made:
        made |= {name: _anything(chance) for name in _OPEN_OF_POD if chance.random() < 0.02}
    elif "command" in fields:
        made |= {name: _anything(chance) for name in _OPEN_OF_CONTAINER if chance.random() < 0.02}
    elif "nvidia.com/gpu" in fields:
        made |= {name: chance.choice(QUANTITIES) for name in ("cpu", "memory", "") if chance.random() < 0.1}
    return made


def _anything(chance: Random, depth: int = 0) -> Any:
    """Some JSON."""
    if depth > 2 or chance.random() < 0.3:
        return chance.choice([None, True, 7, -1, *WORDS])
    inner = [_anything(chance, depth + 1) for _ in range(chance.randint(0, 2))]
    return inner if chance.random() < 0.5 else dict(zip(("name", "containerPort"), inner, strict=False))


def _mend(spec: dict[str, Any], *, alone: bool) -> None:
    """What the rules ask for beyond the schema."""
    spec["goal"] = dict(list(spec["goal"].items())[-1:]) or {"efficiencyPercent": 50}
    batch = spec.get("miniBatch")
    if batch:
        candidates = list(dict.fromkeys(batch.get("candidates", ())))
        low, high = sorted(batch.get(end, 64) for end in ("min", "max"))
        ways: list[dict[str, Any]] = [{"value": batch.get("value")}, {"candidates": candidates}]
        spec["miniBatch"] = next((way for way in ways if all(way.values())), {"min": low, "max": high})
    profile = spec.get("profile", {})
    if profile.get("from") == "ConfigMap":
        profile.setdefault("configMapName", "report")
    else:
        profile.pop("configMapName", None)
    for role in ("worker", "server", "chief", "evaluator"):
        if role in ("chief", "evaluator") and spec.get("framework") != "TensorFlow":
            spec.pop(role, None)
        if role in spec:
            _mend_containers(spec[role]["template"]["spec"]["containers"], alone=alone)


def _mend_containers(containers: list[dict[str, Any]], *, alone: bool) -> None:
    if alone:
        del containers[1:]
    for index, container in enumerate(containers):
        container["name"] = f"c{index}"
        container.setdefault("image", "train:1")  # so that many of the pods are taken too
    containers[-1]["name"] = "train"
    containers[-1]["command"] = containers[-1].get("command") or ["python", "train.py"]


def _spoil(chance: Random, spec: Any) -> None:
    around, key = chance.choice(list(_places(spec)))
    how, hostile = chance.choice(["replace", "replace", "add", "remove"]), copy.deepcopy(chance.choice(HOSTILE))
    if how == "add" and isinstance(around, dict):
        around[chance.choice(["gaol", "", "é", "__proto__"])] = hostile
    elif how == "remove":
        del around[key]
    else:
        around[key] = hostile


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
