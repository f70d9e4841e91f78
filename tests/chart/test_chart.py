"""The chart as rendered: what it asks for, what it allows, and what it refuses."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muster
import pytest
import yaml
from chart.conftest import CHART, Objects, Render
from muster.settings import Settings

Helm = Callable[..., subprocess.CompletedProcess[str]]


def of_kind(objects: Objects, *kinds: str) -> Objects:
    return [each for each in objects if each["kind"] in kinds]


def environment(objects: Objects) -> dict[str, str]:
    (deployment,) = of_kind(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_lint_finds_nothing(helm: Helm) -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_the_charts_version_is_the_projects() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == muster.__version__


def test_every_value_is_described() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    values = [(i, line) for i, line in enumerate(lines) if re.match(r" *[a-zA-Z]+: *\S", line)]
    undescribed = [line.strip() for i, line in values if not lines[i - 1].lstrip().startswith("#")]
    assert undescribed == ["pullPolicy: IfNotPresent", "cpu: 50m", "memory: 128Mi", "memory: 512Mi"]


@pytest.mark.parametrize(
    "value",
    [
        "replica=2",
        "replicas=0",
        "image.tagg=dev",
        "log.format=xml",
        "namespaces={Team_A}",
        "settings.write_rate=1",
        "settings.NOPE=1",
    ],
)
def test_a_value_that_the_chart_does_not_know_is_refused(helm: Helm, value: str) -> None:
    done = helm("template", "muster", str(CHART), "--set", value)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("replicas=2",),
        ("namespaces={team-a,team-b}",),
        ("settings.WRITE_RATE=100", "settings.WORKERS=4", "settings.WATCH_NODES=false", "log.level=debug"),
    ],
    ids=str,
)
def test_the_operator_understands_every_setting_of_the_chart(render: Render, values: tuple[str, ...]) -> None:
    given = environment(render(*values))
    known = {f"MUSTER_{name.upper()}" for name in Settings.model_fields}
    assert set(given) - known == set()
    Settings.from_environment(given)


OF_OTHER_VALUES = {"NAMESPACES", "PROFILER_IMAGE", "LOG_FORMAT", "LOG_LEVEL", "METRICS_PORT", "HEALTH_PORT"}
OF_OTHER_VALUES |= {"LEADER_ELECT", "LEASE_NAME", "LEASE_NAMESPACE", "KUBECONFIG", "CONTEXT", "IDENTITY"}


def test_every_setting_that_no_value_makes_can_be_given() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = {name.upper() for name in Settings.model_fields}
    assert set(schema["properties"]["settings"]["propertyNames"]["enum"]) == known - OF_OTHER_VALUES


def test_the_images_are_those_of_the_values(render: Render) -> None:
    objects = render("image.repository=r/operator", "image.tag=v1", "profiler.image.repository=r/profiler")
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "r/operator:v1"
    assert environment(objects)["MUSTER_PROFILER_IMAGE"] == f"r/profiler:{muster.__version__}"


def test_two_operators_share_a_lease_that_goes_with_the_release(render: Render) -> None:
    assert of_kind(render(), "Lease") == []
    objects = render("replicas=2")
    (lease,) = of_kind(objects, "Lease")
    given = Settings.from_environment(environment(objects))
    assert given.leader_elect
    assert (given.lease_namespace, given.lease_name) == (lease["metadata"]["namespace"], lease["metadata"]["name"])


def rules(objects: Objects) -> list[dict[str, Any]]:
    return [rule for role in of_kind(objects, "Role", "ClusterRole") for rule in role["rules"]]


@pytest.mark.parametrize("values", [(), ("replicas=2",), ("namespaces={team-a}",)], ids=str)
def test_no_role_has_a_wildcard_or_reads_secrets(render: Render, values: tuple[str, ...]) -> None:
    found = rules(render(*values))
    assert found
    assert [rule for rule in found if "*" in rule["verbs"] + rule["resources"] + rule["apiGroups"]] == []
    assert [rule for rule in found if "secrets" in rule["resources"]] == []


def test_a_release_for_some_namespaces_has_no_rights_outside_of_them(render: Render) -> None:
    objects = render("namespaces={team-a,team-b}")
    assert of_kind(objects, "ClusterRole", "ClusterRoleBinding") == []
    assert {role["metadata"]["namespace"] for role in of_kind(objects, "Role")} == {"team-a", "team-b"}
    assert environment(objects)["MUSTER_NAMESPACES"] == "team-a,team-b"


def test_the_crd_is_kept_when_the_chart_is_removed(render: Render) -> None:
    (definition,) = of_kind(render(), "CustomResourceDefinition")
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    source = Path(CHART.parents[1] / "crds" / "muster.dev_trainingjobs.yaml")
    assert definition == yaml.safe_load(source.read_text())
    assert of_kind(render("crd.install=false"), "CustomResourceDefinition") == []


def test_a_service_monitor_needs_the_prometheus_operator(helm: Helm, render: Render) -> None:
    on = "metrics.serviceMonitor.enabled=true"
    refused = helm("template", "muster", str(CHART), "--set", on)
    assert "install the Prometheus operator first" in refused.stderr
    (monitor,) = of_kind(render(on, flags=("--api-versions", "monitoring.coreos.com/v1")), "ServiceMonitor")
    (service,) = of_kind(render(), "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
