"""TrainingJobs for tests on a cluster, and a profile that lets them start at once where profiling is not the test."""

import json
from typing import Any

IMAGE = "muster-examples:dev"

REPORT: dict[str, Any] = {
    "format": "muster.dev/profile/v1",
    "device": {"kind": "cpu", "name": "test", "memoryBytes": 8_000_000_000, "count": 1},
    "framework": {"name": "torch", "version": "2.6"},
    "parameters": {
        "bytes": 40_000_000,
        "exchangedBytes": 40_000_000,
        "tensors": [{"name": f"w{i}", "elements": 1_000_000, "bytes": 4_000_000} for i in range(10)],
    },
    "points": [
        {
            "miniBatch": 64,
            "fits": True,
            "computeTime": {
                "medianNanoseconds": 200_000_000,
                "lowerQuartileNanoseconds": 199_000_000,
                "upperQuartileNanoseconds": 201_000_000,
                "intervalLowNanoseconds": 199_000_000,
                "intervalHighNanoseconds": 201_000_000,
                "cycles": 20,
            },
            "overheadTime": {
                "medianNanoseconds": 4_000_000,
                "lowerQuartileNanoseconds": 4_000_000,
                "upperQuartileNanoseconds": 4_000_000,
                "intervalLowNanoseconds": 4_000_000,
                "intervalHighNanoseconds": 4_000_000,
                "cycles": 20,
            },
            "memory": {"peakBytes": 500_000_000},
        }
    ],
}


def template(script: str, *, image: str = IMAGE, **container: Any) -> dict[str, Any]:
    """A pod template whose training container runs `script` in a shell."""
    body = {
        "name": "train",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        **container,
    }
    return {"spec": {"terminationGracePeriodSeconds": 2, "containers": [body]}}


def job(
    name: str, worker: str, *, server: str | None = None, profile: str | None = "report", **spec: Any
) -> dict[str, Any]:
    """A TrainingJob of shell scripts; `profile` names the ConfigMap of its profile, None profiles it for real."""
    body: dict[str, Any] = {
        "goal": {"speedup": "1.5"},
        "worker": {"template": template(worker)},
        "network": {"serverBandwidth": "10Gbit", "workerBandwidth": "10Gbit"},
        "runPolicy": {"backoffLimit": 0},
    }
    if server is not None:
        body["server"] = {"template": template(server)}
    if profile is not None:
        body["profile"] = {"from": "ConfigMap", "configMapName": profile}
    body.update(spec)
    return {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": body}


def report_config_map(name: str = "report") -> dict[str, Any]:
    """A ConfigMap with the profile, as `profile.from: ConfigMap` reads it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"report.json": json.dumps(REPORT)},
    }
