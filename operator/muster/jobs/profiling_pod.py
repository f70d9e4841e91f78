"""The profiling pod: the worker's template with its GPUs, and the user's command wrapped by a profiler that an init
container brings along.
"""

import re
from typing import Any

from muster.api import labels
from muster.api.job import POWERS_OF_TWO, TrainingJobSpec, Workspace
from muster.jobs import contracts, objects, pods
from muster.jobs.members import PEER, PROFILER, Cluster, Member, pod_name
from muster.jobs.model import Job, Role
from muster.jobs.settings import PORT, Settings

_VOLUME, _PATH = "muster", "/muster"
_REFERENCE = re.compile(r"(?<!\$)\$\(" + labels.ENV_MINIBATCH + r"\)")
_USER = 65532
"""Of the init container, where the pod names none: it writes only into a volume that is open to everybody."""
_WHERE = "worker.template.spec"


def candidates(spec: TrainingJobSpec) -> tuple[int, ...]:
    """The mini-batches to profile, rising; none where that is left to the profiler."""
    batch = spec.mini_batch
    if batch.value is not None:
        return (batch.value,)
    if batch.candidates:
        return tuple(sorted(set(batch.candidates)))
    if batch.min and batch.max:
        return tuple(power for power in POWERS_OF_TWO if batch.min <= power <= batch.max)
    return ()


def _escape(text: str) -> str:
    """Keeps Kubernetes from filling in the mini-batch: the profiler does, once for each candidate."""
    return _REFERENCE.sub(f"$$({labels.ENV_MINIBATCH})", text)


def measures_network(spec: TrainingJobSpec, settings: Settings) -> bool:
    """Whether the plan needs a bandwidth that the spec leaves out. Where nothing is exchanged it needs none."""
    network, exchanges = spec.network, spec.server is not None or spec.worker.max_replicas > 1
    if spec.worker.replicas is not None and spec.server is None:
        exchanges = spec.worker.replicas > 1
    given = network.worker_bandwidth and (network.server_bandwidth or spec.server is None)
    return settings.measure_network and exchanges and not given


def bring_profiler(pod_spec: dict[str, Any], container: dict[str, Any], settings: Settings, where: str) -> None:
    """Gives a container of the pod the profiler, by an init container that copies it into a volume of both."""
    mounts = objects.listed(container, "volumeMounts", f"{where}.containers[{container['name']}]")
    volumes, inits = (objects.listed(pod_spec, key, where) for key in ("volumes", "initContainers"))
    container["volumeMounts"] = [*mounts, {"name": _VOLUME, "mountPath": _PATH}]
    pod_spec["volumes"] = [*volumes, {"name": _VOLUME, "emptyDir": {"sizeLimit": "256Mi"}}]
    pod_spec["initContainers"] = [_init_container(settings, pod_spec), *inits]


def _init_container(settings: Settings, pod_spec: dict[str, Any]) -> dict[str, Any]:
    security: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if not objects.mapped(pod_spec, "securityContext", _WHERE).get("runAsUser"):
        security |= {"runAsUser": _USER, "runAsGroup": _USER}
    return {
        "name": "muster-profiler",
        "image": settings.profiler_image,
        "command": ["/bin/sh", "-c", f"cp -r /muster-profiler/. {_PATH}/"],
        "securityContext": security,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
        "volumeMounts": [{"name": _VOLUME, "mountPath": _PATH}],
    }


def build(job: Job, spec: TrainingJobSpec, attempt: int, settings: Settings) -> dict[str, Any]:
    """The pod; `attempt` counts the tries to profile.

    LookupError where the training container has no command: what its image would run cannot be known from here.
    BadTemplate where the template cannot be a pod's.
    """
    template = spec.worker.template
    body = pods.base(job, template, PROFILER, attempt, None)
    pod_spec, container = body["spec"], pods.training_container(body, template)
    if not container.get("command"):
        raise LookupError(
            f"{_WHERE}.containers[{container['name']}].command is missing: write what the image's entrypoint runs"
        )
    alone = Cluster(workers=(f"localhost:{PORT}",), gpus_per_worker=template.gpus)
    env = contracts.environment(spec.framework, Member(Role.WORKER, 0), alone, 0, None)
    env |= {
        labels.ENV_PROFILE_MINIBATCHES: ",".join(map(str, candidates(spec))),
        labels.ENV_PROFILE_WARMUP_STEPS: str(spec.profile.warmup_steps),
        labels.ENV_PROFILE_STEPS: str(spec.profile.steps),
        # A tenth is left for pulling the image and for reporting.
        labels.ENV_PROFILE_DEADLINE: str(spec.profile.active_deadline_seconds * 9 // 10),
    }
    if spec.convolution.workspace is Workspace.OFF:
        env[labels.ENV_PROFILE_CONVOLUTION_SECONDS] = "0"
    if measures_network(spec, settings):
        env[labels.ENV_PROFILE_PEER] = settings.address(job.namespace, job.name, pod_name(job.name, PEER))
    if not template.gpus:
        env["NVIDIA_VISIBLE_DEVICES"] = "void"
    theirs = [
        entry | {"value": _escape(entry["value"])} if entry.get("value") else entry
        for entry in container.get("env") or []
    ]
    container |= {
        "command": [
            *settings.profile_command,
            *map(_escape, container["command"]),
            *map(_escape, container.get("args") or []),
        ],
        "env": pods.merged_env(env, theirs),
        "terminationMessagePolicy": "File",
    }
    pods.startable(container, env)
    container.pop("args", None)
    container.pop("terminationMessagePath", None)
    # A probe would kill a script that is being measured, or hold it back.
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        container.pop(probe, None)
    bring_profiler(pod_spec, container, settings, _WHERE)
    pod_spec["activeDeadlineSeconds"] = spec.profile.active_deadline_seconds
    return body
