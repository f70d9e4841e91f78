"""The pods of an attempt: the user's template with what makes it a member, and nothing else changed."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from muster.api import labels
from muster.api.job import PodTemplate, TrainingJobSpec
from muster.api.status import Plan
from muster.api.template import ARGUMENT_LENGTH
from muster.jobs import contracts, kueue, members, objects
from muster.jobs.members import Cluster, Member
from muster.jobs.model import Job, Role
from muster.jobs.settings import PORT

_LONGEST_BYTES = ARGUMENT_LENGTH - 1
"""Of one argument, or of NAME=value, with which Linux starts a process: without its final zero."""


def merged_env(ours: Mapping[str, str], theirs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ours first, so that the user's may refer to them. Of two with one name the user's wins, but for MUSTER_*: those
    are facts.
    """
    named = {entry["name"] for entry in theirs}
    kept = [
        {"name": name, "value": value}
        for name, value in ours.items()
        if name.startswith("MUSTER_") or name not in named
    ]
    return kept + [entry for entry in theirs if not (entry["name"] in ours and entry["name"].startswith("MUSTER_"))]


def startable(container: dict[str, Any], ours: Mapping[str, str]) -> None:
    """BadTemplate where Linux could not start the container, and would say no more than that a list is too long."""
    texts = [(f"the variable {entry['name']}", f"{entry['name']}={entry.get('value')}") for entry in container["env"]]
    texts += [("an argument", text) for text in [*(container.get("command") or []), *(container.get("args") or [])]]
    for what, text in texts:
        if (length := len(text.encode())) > _LONGEST_BYTES:
            mine = what.rpartition(" ")[-1] in ours
            remedy = "use fewer replicas, or shorter names of job and namespace" if mine else "put it into a file"
            raise objects.BadTemplate(
                f"{what} of the container {container['name']} has {length} bytes, and Linux starts no process with "
                f"more than {_LONGEST_BYTES} in one: {remedy}"
            )


def base(job: Job, template: PodTemplate, member: Member, attempt: int, group: int | None) -> dict[str, Any]:
    """The template as a pod of this job: named, labelled, owned, never restarted in place, and without a token it did
    not ask for.

    `group` is how many pods a queue shall admit together.
    """
    spec = deepcopy(template.spec)
    # Attempts are Muster's: a container that restarts by itself meets a cluster that has moved on.
    spec["restartPolicy"] = "Never"
    spec.setdefault("automountServiceAccountToken", False)
    spec.setdefault("enableServiceLinks", False)  # A service named `master` would set MASTER_PORT.
    own = {labels.ROLE: str(member.role), labels.INDEX: str(member.index), labels.ATTEMPT: str(attempt)}
    queue_labels, queue_annotations = kueue.membership(job, member, attempt, group)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": objects.metadata(
            job,
            members.pod_name(job.name, member),
            labels=template.metadata.labels | queue_labels | own,
            annotations=template.metadata.annotations | queue_annotations,
        ),
        "spec": spec,
    }


def training_container(pod: dict[str, Any], template: PodTemplate) -> dict[str, Any]:
    """The pod's own copy of the template's training container."""
    name = template.training_container["name"]
    return next(container for container in pod["spec"]["containers"] if container["name"] == name)


def pod(job: Job, spec: TrainingJobSpec, plan: Plan, attempt: int, member: Member, cluster: Cluster) -> dict[str, Any]:
    """One member of the attempt. BadTemplate where its template cannot be a pod's."""
    template = members.template(spec, member.role)
    body = base(job, template, member, attempt, len(members.of(spec, plan)))
    body["spec"] |= {"hostname": body["metadata"]["name"], "subdomain": job.name}
    container = training_container(body, template)
    gpus = template.gpus
    if member.role == Role.SCHEDULER:
        without_gpus(container)
        gpus = 0
    env = contracts.environment(spec.framework, member, cluster, attempt, plan)
    if not gpus:
        env["NVIDIA_VISIBLE_DEVICES"] = "void"  # Or the container runtime shows it every GPU of the node.
    container["env"] = merged_env(env, container.get("env") or [])
    # So that the status can say what went wrong.
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    ports = objects.listed(container, "ports", f"{member.role}.template.spec.containers[{container['name']}]")
    if not any(port.get("containerPort") == PORT or port.get("name") == "muster" for port in ports):
        container["ports"] = [*ports, {"name": "muster", "containerPort": PORT}]
    startable(container, env)
    return body


def without_gpus(container: dict[str, Any]) -> None:
    """Takes the GPUs from what a container asks for."""
    for amounts in (container.get("resources") or {}).values():
        if isinstance(amounts, dict):
            amounts.pop(labels.GPU_RESOURCE, None)
