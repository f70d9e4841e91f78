"""The peer pod: for the length of a profile the other end of its network measurement, made from the servers' template,
or the workers' where there are none.

It is a help and no member: nothing waits for it, and where it cannot be made, scheduled or reached the profile goes on
and says that the network was not measured.
"""

from typing import Any

from muster.api import labels
from muster.api.job import PodTemplate
from muster.jobs import failures, members, objects, pods, profiling_pod
from muster.jobs.contracts import generic
from muster.jobs.draft import Draft
from muster.jobs.members import PEER, PROFILER, Cluster, pod_name
from muster.jobs.model import CreatePod, CreateService, Pod, Role
from muster.jobs.objects import BadTemplate
from muster.jobs.settings import PORT

_WHERE = "server.template.spec"
_DROPPED = ("volumes", "initContainers", "activeDeadlineSeconds")
"""Of the template's pod. What the user's own containers need is not needed here, and a volume could keep two pods from
running at once."""
_KEPT = ("name", "image", "imagePullPolicy", "resources", "securityContext")
"""Of its training container."""


def tend(draft: Draft) -> None:
    """Lets the peer go once there is no profile for it to help, whatever became of that."""
    pod, profiler = draft.children.peer, draft.children.profiler
    helps = profiler is not None and _goes_on(profiler) and pod is not None and pod.attempt == profiler.attempt
    if pod is not None and not (helps and draft.status.profile is None and not draft.ended):
        draft.delete(pod)


def start(draft: Draft, profiler: Pod) -> None:
    """Makes the peer of a profiling pod that has its node. Not before: the peer stays off that node, and must not be
    the reason why the profiling pod finds none.
    """
    name = pod_name(draft.job.name, PEER)
    if not profiler.node or not profiling_pod.measures_network(draft.spec, draft.settings):
        return
    if draft.children.peer is not None or name in draft.children.foreign or draft.refused(name, draft.job.name):
        return
    try:
        body = build(draft, profiler.attempt)
    except BadTemplate:
        return  # The plan's pods are made from that template too, and will say so.
    if draft.job.name not in draft.observed.services:
        draft.actions.append(CreateService(draft.job.name, objects.service(draft.job)))
    draft.actions.append(CreatePod(name, body))


def trouble(draft: Draft) -> str:
    """Why the peer does not run, for people; empty where it does."""
    pod = draft.children.peer
    refusal = draft.refused(pod_name(draft.job.name, PEER))
    blocked = failures.blocked(pod) if pod is not None else None
    why = refusal.message if refusal else blocked.message if blocked else ""
    return f"; the peer that its network would be measured against is not there: {why}" if why else ""


def build(draft: Draft, attempt: int) -> dict[str, Any]:
    """The pod, on another node than the profiling pod: within one node memory would be measured, and no network."""
    template: PodTemplate = members.template(draft.spec, Role.SERVER)
    body = pods.base(draft.job, template, PEER, attempt, None)
    spec, container = body["spec"], pods.training_container(body, template)
    pods.without_gpus(container)
    for key in _DROPPED:
        spec.pop(key, None)
    alone = Cluster(workers=(f"localhost:{PORT}",))
    limit = draft.spec.profile.active_deadline_seconds
    env = generic.environment(PEER, alone, attempt) | {"NVIDIA_VISIBLE_DEVICES": "void"}
    own = {key: container[key] for key in _KEPT if key in container}
    own |= {
        "command": [*draft.settings.profile_command, "--peer", "--port", str(PORT), "--seconds", str(limit)],
        "env": [{"name": key, "value": value} for key, value in env.items()],
    }
    spec |= {
        "hostname": body["metadata"]["name"],
        "subdomain": draft.job.name,
        "containers": [own],
        "activeDeadlineSeconds": limit,
        "terminationGracePeriodSeconds": 1,  # It has nothing to save, and the job's own pods may need its room.
        "affinity": _apart(spec, draft.job.name),
    }
    profiling_pod.bring_profiler(spec, own, draft.settings, _WHERE)
    return body


def _apart(spec: dict[str, Any], job: str) -> dict[str, Any]:
    affinity = objects.mapped(spec, "affinity", _WHERE)
    term = {
        "labelSelector": {"matchLabels": {labels.JOB: job, labels.ROLE: str(PROFILER.role)}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    apart = objects.mapped(affinity, "podAntiAffinity", f"{_WHERE}.affinity")
    terms = objects.listed(apart, required, f"{_WHERE}.affinity.podAntiAffinity")
    return affinity | {"podAntiAffinity": apart | {required: [*terms, term]}}


def _goes_on(profiler: Pod) -> bool:
    return not (profiler.deleting or failures.done(profiler) or failures.failed(profiler))
