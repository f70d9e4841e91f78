"""Whatever Muster makes for a job carries the same names, labels and owner: with those, Kubernetes cleans up and
nothing is made twice.
"""

import json
from typing import Any

from muster.api import labels
from muster.api.report import Report
from muster.jobs.model import Job
from muster.jobs.settings import PORT

_CONFIG_MAP_BYTES = 900_000
"""Kubernetes holds at most 1 MiB in one."""
REPORT_KEY = "report.json"


class BadTemplate(ValueError):
    """A part of a pod template has a shape that no pod has. The message names it."""


def listed(parent: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """A list of objects in a template, whose other fields the CRD leaves open: the API server sees them only in a
    pod.
    """
    found = parent.get(key) or []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise BadTemplate(f"{where}.{key} must be a list of objects")
    return found


def mapped(parent: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """An object in a template."""
    found = parent.get(key) or {}
    if not isinstance(found, dict):
        raise BadTemplate(f"{where}.{key} must be an object")
    return found


def owner(job: Job) -> dict[str, Any]:
    """The job controls what it owns. It does not block the job's deletion: nothing here needs to be gone first."""
    return {
        "apiVersion": labels.API_VERSION,
        "kind": labels.KIND,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def metadata(job: Job, name: str, **more: dict[str, str]) -> dict[str, Any]:
    """Of a child. `more` are `labels` and `annotations` beside Muster's own, which win."""
    own = {labels.JOB: job.name, "app.kubernetes.io/managed-by": "muster"}
    found: dict[str, Any] = {
        "name": name,
        "namespace": job.namespace,
        "labels": more.get("labels", {}) | own,
        "ownerReferences": [owner(job)],
    }
    if more.get("annotations"):
        found["annotations"] = more["annotations"]
    return found


def service(job: Job) -> dict[str, Any]:
    """The headless service that gives every pod its name. Pods that are not ready are in it: they meet before they can
    be.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, job.name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {labels.JOB: job.name},
            "ports": [{"name": "muster", "port": PORT}],
        },
    }


def report_name(job: str) -> str:
    """Of the config map that keeps a job's profile report."""
    return f"{job}-profile"


def report(job: Job, content: Report) -> dict[str, Any] | None:
    """The config map that keeps the report, so that a changed goal needs no second profile. None where the report is
    too long for one.
    """
    text = json.dumps(content.dump(), separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) > _CONFIG_MAP_BYTES:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, report_name(job.name)),
        "data": {REPORT_KEY: text},
    }
