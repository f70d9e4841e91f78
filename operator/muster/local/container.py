"""What a pod's training container would run, as a process of this machine: expanded as the kubelet does it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.labels import GPU_RESOURCE, TRAINING_CONTAINER

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable's value, an unknown one stays as it is, and `$$` becomes `$`."""
    return _REFERENCE.sub(lambda found: "$" if found[1] else variables.get(found[2], found[0]), text)


@dataclass(frozen=True)
class Command:
    """What to start. `environment` is laid over that of `muster run` itself."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    gpus: int
    grace_seconds: int
    deadline_seconds: int | None


def command(pod: Mapping[str, Any]) -> Command:
    """Of the pod's training container. ValueError where it has no command: its image's own is not known here."""
    spec = pod["spec"]
    container = training_container(spec)
    if not container.get("command"):
        raise ValueError(f"container {container['name']} has no command, and its image's entrypoint is not known here")
    environment: dict[str, str] = {}
    for entry in container.get("env") or []:
        if "valueFrom" not in entry:
            environment[entry["name"]] = expand(entry.get("value") or "", environment)
    argv = [*container["command"], *(container.get("args") or [])]
    limits = (container.get("resources") or {}).get("limits") or {}
    return Command(
        argv=tuple(expand(word, environment) for word in argv),
        environment=environment,
        gpus=int(limits.get(GPU_RESOURCE, 0)),
        grace_seconds=int(spec.get("terminationGracePeriodSeconds", 30)),
        deadline_seconds=spec.get("activeDeadlineSeconds"),
    )


def training_container(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The container named `train`, or else the first."""
    containers: list[dict[str, Any]] = spec["containers"]
    return next((each for each in containers if each.get("name") == TRAINING_CONTAINER), containers[0])


def left_out(spec: Mapping[str, Any]) -> list[str]:
    """What of a user's pod spec means nothing to a process of this machine, each in a few words."""
    container = training_container(spec)
    notes = [f"image {container['image']}"] if container.get("image") else []
    notes += [f"container {each['name']}" for each in spec["containers"] if each is not container]
    notes += [f"init container {each['name']}" for each in spec.get("initContainers") or []]
    notes += [f"volume {each['name']}" for each in spec.get("volumes") or []]
    notes += [f"variable {each['name']} (valueFrom)" for each in container.get("env") or [] if "valueFrom" in each]
    notes += ["envFrom"] if container.get("envFrom") else []
    notes += [f"workingDir {container['workingDir']}"] if container.get("workingDir") else []
    return notes
