"""What a user is told when a TrainingJob is applied, changed and listed: the CRD on a real API server."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from muster.api import crd
from muster.api.job import TrainingJobSpec
from muster_dev.cluster import Cluster, CommandError
from support.job_constraints import (
    ALLOWED_WHEN_SUSPENDED,
    BAD_NAMES,
    CHANGES,
    CONSTRAINTS,
    CONTAINER,
    GOOD_NAMES,
    SUSPEND,
    TEMPLATE,
    Change,
    Constraint,
    containers,
    job,
    merged,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

TREE = Path(__file__).resolve().parents[2]
CRD = TREE / "crds" / "muster.dev_trainingjobs.yaml"
SPEC = crd.job_schema()["properties"]["spec"]


@dataclass(frozen=True)
class Jobs:
    """The TrainingJobs of one namespace."""

    cluster: Cluster
    namespace: str

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *args, stdin=stdin)

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        created: dict[str, Any] = json.loads(self.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(body)))
        return created

    def would_create(self, body: dict[str, Any]) -> dict[str, Any]:
        seen = self.kubectl("create", "--dry-run=server", "-f", "-", "-o", "json", stdin=json.dumps(body))
        created: dict[str, Any] = json.loads(seen)
        return created

    def refusals(self, bodies: dict[str, dict[str, Any]]) -> dict[str, str]:
        """What the user reads about each job; nothing about one that would be created. One call for hundreds."""
        named = [{**body, "metadata": {"name": f"n{index}"}} for index, body in enumerate(bodies.values())]
        try:
            self.kubectl("create", "--dry-run=server", "-f", "-", stdin="\n---\n".join(map(json.dumps, named)))
        except CommandError as error:
            said = re.findall(r'TrainingJob.muster.dev "n(\d+)" is invalid: (.*)', str(error))
            return {list(bodies)[int(index)]: message for index, message in said}
        return {}

    def refusal(self, body: dict[str, Any]) -> str:
        """What the user reads; "" where the job would be created."""
        try:
            self.would_create(body)
        except CommandError as error:
            return str(error)
        return ""

    def would_patch(self, name: str, spec: dict[str, Any]) -> str:
        patch = json.dumps({"spec": spec})
        return self.kubectl("patch", "tjob", name, "--dry-run=server", "--type=merge", "-p", patch)


@pytest.fixture(scope="session")
def jobs(api_server: Cluster) -> Iterator[Jobs]:
    api_server.apply(CRD)
    # `kubectl wait` fails while the definition has no condition at all.
    for attempt in Retrying(
        stop=stop_after_delay(30), wait=wait_fixed(0.2), retry=retry_if_exception_type(CommandError)
    ):
        with attempt:
            api_server.kubectl("get", "trainingjobs.muster.dev")
    api_server.kubectl("create", "namespace", "crd-tests")
    yield Jobs(api_server, "crd-tests")
    api_server.kubectl("delete", "-n", "crd-tests", "tjob", "--all")
    api_server.delete_namespace("crd-tests")


@pytest.fixture(scope="module")
def refusals(jobs: Jobs) -> dict[str, str]:
    """The answers about every example of this module, by what it exemplifies."""
    bodies = {f"{case.title} passes": job(case.passes) for case in CONSTRAINTS}
    bodies |= {case.title: job(case.refused) for case in CONSTRAINTS}
    bodies |= {f"{bound} passes": placed(bound.field, bound.within) for bound in BOUNDS}
    bodies |= {str(bound): placed(bound.field, bound.past) for bound in BOUNDS}
    return jobs.refusals(bodies)


@pytest.mark.scenario("A3")
@pytest.mark.parametrize("case", CONSTRAINTS, ids=lambda case: case.title)
def test_a_constraint_passes_its_good_example_and_refuses_its_bad_one_with_its_message(
    refusals: dict[str, str], case: Constraint
) -> None:
    assert f"{case.title} passes" not in refusals
    assert case.message in refusals[case.title]
    assert case.field in refusals[case.title]


@pytest.mark.scenario("C10")
@pytest.mark.parametrize("name", GOOD_NAMES)
def test_c10_a_name_that_fits_its_pods_passes(jobs: Jobs, name: str) -> None:
    assert jobs.refusal(job({}, name)) == ""


@pytest.mark.scenario("C10")
@pytest.mark.parametrize("name", BAD_NAMES)
def test_c10_a_name_that_its_pods_cannot_carry_is_refused(jobs: Jobs, name: str) -> None:
    assert "its pods and services are named after it" in jobs.refusal(job({}, name))


@pytest.mark.scenario("C2")
@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"modee": "Run"}, "spec.modee"),
        ({"worker": {"replica": 2}}, "spec.worker.replica"),
        ({"goal": {"efficiency": 80}}, "spec.goal.efficiency"),
        ({"runPolicy": {"ttlSeconds": 1}}, "spec.runPolicy.ttlSeconds"),
        ({"worker": {"template": {"metadata": {"name": "x"}}}}, "spec.worker.template.metadata.name"),
    ],
)
def test_c2_a_misspelt_field_is_refused_by_name(jobs: Jobs, patch: dict[str, Any], field: str) -> None:
    assert f'unknown field "{field}"' in jobs.refusal(job(patch))


@pytest.mark.scenario("C11")
@pytest.mark.parametrize(
    "patch",
    [
        {"goal": None},
        {"worker": None},
        {"worker": {"template": None}},
        {"worker": {"template": {"spec": None}}},
        {"worker": {"template": {"spec": {"containers": None}}}},
        {"worker": {"template": {"spec": {"containers": [{"image": "no-name"}]}}}},
        {"goal": {"efficiencyPercent": 0}},
        {"goal": {"efficiencyPercent": 1.2}},
        {"goal": {"efficiencyPercent": "80"}},
        {"goal": {"efficiencyPercent": None, "speedup": 7.5}},
        {"worker": {"template": {"spec": {"containers": "train"}}}},
        containers({"env": [{"name": "A", "value": 8}]}),
        containers({}, {}),
    ],
    ids=str,
)
def test_c11_a_spec_that_makes_no_sense_is_refused(jobs: Jobs, patch: dict[str, Any]) -> None:
    assert "is invalid" in jobs.refusal(job(patch))


@dataclass(frozen=True)
class Bound:
    """A keyword of the schema at a field, with the longest or largest value that it lets through and one past it."""

    field: str
    keyword: str
    within: Any
    past: Any

    def __str__(self) -> str:
        return f"{self.field} {self.keyword}"


def _text(length: int) -> str:
    return "a" * length


def bounds(schema: dict[str, Any], field: str) -> Iterator[Bound]:
    """Every bound of a field's schema and of what is below it, each list item as item 0."""
    if "enum" in schema:
        yield Bound(field, "enum", schema["enum"][-1], "Nonsense")
    if "minimum" in schema:
        yield Bound(field, "minimum", schema["minimum"], schema["minimum"] - 1)
        yield Bound(field, "maximum", schema["maximum"], schema["maximum"] + 1)
    if schema.get("type") == "boolean":
        yield Bound(field, "type", True, "yes")
    if schema.get("minLength"):
        yield Bound(field, "minLength", _text(schema["minLength"]), "")
    if "maxLength" in schema and "x-kubernetes-validations" not in schema:
        yield Bound(field, "maxLength", _text(schema["maxLength"]), _text(schema["maxLength"] + 1))
    if "pattern" in schema:
        yield Bound(field, "pattern", "a-1", "-A_")
    if "maxItems" in schema:
        yield from _of_list(schema, field)
    if "maxProperties" in schema:
        many = {f"key{i}": "value" for i in range(schema["maxProperties"] + 1)}
        yield Bound(field, "maxProperties", dict(list(many.items())[1:]), many)
        limit = schema["additionalProperties"]["maxLength"]
        yield Bound(field, "values' maxLength", {"key": _text(limit)}, {"key": _text(limit + 1)})
    for name, below in schema.get("properties", {}).items():
        yield from bounds(below, f"{field}.{name}")


def _of_list(schema: dict[str, Any], field: str) -> Iterator[Bound]:
    item = schema["items"]
    if item["type"] == "object":
        make = lambda i: {**CONTAINER, "name": "train" if i == 0 else f"c{i}"}  # noqa: E731
    elif item["type"] == "string":
        make = str
    else:
        make = lambda i: i + 1  # noqa: E731
    many = [make(i) for i in range(schema["maxItems"] + 1)]
    if schema.get("minItems"):
        yield Bound(field, "minItems", many[:1], [])
    yield Bound(field, "maxItems", many[:-1], many)
    yield from bounds(item, f"{field}[0]")


AROUND: dict[str, Any] = {
    "spec.server": {"server": {"template": TEMPLATE}},
    "spec.chief": {"framework": "TensorFlow", "chief": {"template": TEMPLATE}},
    "spec.evaluator": {"framework": "TensorFlow", "evaluator": {"template": TEMPLATE}},
    "spec.goal.deadline": {"goal": {"efficiencyPercent": None, "deadline": {"seconds": 1, "samples": 1}}},
    "spec.goal.cost": {"goal": {"efficiencyPercent": None, "cost": {"gpuSeconds": 1, "samples": 1}}},
    "spec.profile.configMapName": {"profile": {"from": "ConfigMap"}},
}
"""What a job needs to have before it can have the field."""


def placed(field: str, value: Any) -> dict[str, Any]:
    """A job with `value` at `field` (`spec.worker.template.spec.containers[0].name`)."""
    body = job(next((patch for at, patch in AROUND.items() if field.startswith(at)), {}))
    *way, last = [int(step) if step.isdigit() else step for step in field.replace("[0]", ".0").split(".")]
    place: Any = body
    for step, following in itertools.pairwise([*way, last]):
        if isinstance(place, dict) and step not in place:
            place[step] = [{}] if following == 0 else {}
        place = place[step]
    place[last] = value
    return body


BOUNDS = [bound for bound in bounds(SPEC, "spec") if "nvidia" not in bound.field]


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_a_value_at_a_bound_passes_and_one_past_it_is_refused(refusals: dict[str, str], bound: Bound) -> None:
    assert f"{bound.field}: " not in refusals.get(f"{bound} passes", "")
    assert bound.field in refusals[str(bound)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.title)
def test_a_change_is_allowed_or_refused_with_its_message(jobs: Jobs, change: Change) -> None:
    name = f"change-{CHANGES.index(change)}"
    jobs.create(job(change.before or ({"mode": "Recommend"} if "mode" in change.allowed else {}), name))
    jobs.would_patch(name, change.allowed)
    if "mode" in change.allowed:
        jobs.kubectl("patch", "tjob", name, "--type=merge", "-p", '{"spec": {"mode": "Run"}}')
    with pytest.raises(CommandError) as refused:
        jobs.would_patch(name, change.refused)
    assert change.message in str(refused.value)
    assert f"{change.field}: " in str(refused.value)


def test_a_suspended_job_can_be_given_another_template(jobs: Jobs) -> None:
    jobs.create(job(SUSPEND, "suspended"))
    for change in ALLOWED_WHEN_SUSPENDED:
        jobs.would_patch("suspended", change)


def test_the_smallest_job_gets_every_default(jobs: Jobs) -> None:
    body = job({})
    created = jobs.would_create(body)["spec"]
    ours = TrainingJobSpec.model_validate(body["spec"])
    assert TrainingJobSpec.model_validate(created) == ours
    assert created["runPolicy"] == ours.run_policy.dump()
    assert created["profile"] == ours.profile.dump()
    assert (created["mode"], created["worker"]["maxReplicas"]) == ("Run", 64)


def test_null_means_not_given(jobs: Jobs) -> None:
    created = jobs.would_create(
        job({})
        | {"spec": {**job({})["spec"], "server": None, "mode": None, "goal": {"efficiencyPercent": 80, "cost": None}}}
    )
    assert "server" not in created["spec"]
    assert created["spec"]["mode"] == "Run"


def test_a_pod_spec_is_kept_whole(jobs: Jobs) -> None:
    pod = {
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [{"name": "fetch", "image": "fetch:1"}],
    }
    trainer = {
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "resources": {"limits": {"cpu": 0.5, "nvidia.com/gpu": 1}},
    }
    created = jobs.would_create(job(merged(containers(trainer), {"worker": {"template": {"spec": pod}}})))
    assert created["spec"]["worker"]["template"]["spec"] == {**pod, "containers": [{**CONTAINER, **trainer}]}


STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "state": "Running",
    "conditions": [
        {
            "type": "Sized",
            "status": "True",
            "reason": "Planned",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-12-01T00:00:00Z",
        }
    ],
    "workers": {"desired": 8, "active": 8, "ready": 7, "succeeded": 0, "failed": 0, "summary": "7/8"},
    "servers": {"desired": 3, "active": 3, "ready": 3, "succeeded": 0, "failed": 0, "summary": "3/3"},
    "plan": {
        "inputs": "sha256:0",
        "miniBatch": {"value": 64, "recommended": 64, "limitedBy": "Memory", "message": "128 needs more"},
        "workers": {"value": 8, "recommended": 8, "limitedBy": "Efficiency", "message": "a 9th falls below"},
        "servers": {"value": 3, "recommended": 3, "limitedBy": "Bandwidth", "message": "2 leave 61 ms exposed"},
        "predicted": {"iterationTimeMicroseconds": 1, "samplesPerSecond": 1, "efficiencyPercent": 81, "speedup": "6.5"},
    },
}


def write_status(jobs: Jobs, name: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    jobs.kubectl("patch", "tjob", name, "--subresource=status", "--type=merge", "-p", patch)


def test_kubectl_get_shows_the_job_at_a_glance(jobs: Jobs) -> None:
    jobs.create(job({}, "glance"))
    write_status(jobs, "glance", STATUS)
    header, row = jobs.kubectl("get", "tjob", "glance").splitlines()
    assert header.split() == ["NAME", "STATE", "WORKERS", "SERVERS", "BATCH", "EFFICIENCY", "AGE"]
    assert row.split()[:-1] == ["glance", "Running", "7/8", "3/3", "64", "81"]
    assert "SPEEDUP" in jobs.kubectl("get", "tjob", "glance", "-o", "wide")
    assert "trainingjob.muster.dev/glance" in jobs.kubectl("get", "all")


def test_the_status_is_written_only_through_its_subresource(jobs: Jobs) -> None:
    assert "status" not in jobs.would_create({**job({}), "status": STATUS})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"conditions": [{**STATUS["conditions"][0], "reason": "not camel"}]}, "status.conditions[0].reason"),
        ({"conditions": [{**STATUS["conditions"][0], "message": "x" * 1025}]}, "status.conditions[0].message"),
        ({"conditions": [{"type": "Sized"}]}, "status.conditions[0].status"),
        ({"plan": {"alternatives": [{}] * 9}}, "status.plan.alternatives"),
        ({"attempt": -1}, "status.attempt"),
    ],
    ids=str,
)
def test_a_status_outside_the_schema_is_refused(jobs: Jobs, change: dict[str, Any], field: str) -> None:
    name = re.sub(r"[^a-z0-9]+", "-", field.lower()).strip("-")
    jobs.create(job({}, name))
    with pytest.raises(CommandError, match="is invalid") as refused:
        write_status(jobs, name, merged(STATUS, change))
    assert field in str(refused.value)


def shown_jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every whole TrainingJob in examples, docs and README."""
    texts = [(path, path.read_text()) for path in sorted((TREE / "examples").rglob("*.yaml"))]
    for path in [TREE / "README.md", *sorted((TREE / "docs").glob("*.md"))]:
        texts += [(path, block) for block in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL)]
    for path, text in texts:
        documents = yaml.safe_load_all(text) if "kind: TrainingJob" in text else ()
        for number, body in enumerate(each for each in documents if each and each.get("kind") == "TrainingJob"):
            yield f"{path.relative_to(TREE)} {number} {body['metadata']['name']}", body


SHOWN = dict(shown_jobs())


@pytest.mark.parametrize("where", SHOWN)
def test_a_job_that_we_show_is_taken(jobs: Jobs, where: str) -> None:
    assert jobs.refusal(SHOWN[where]) == ""


@pytest.mark.scenario("D6")
def test_d6_the_crd_can_be_applied_by_an_old_client_side_apply_twice(jobs: Jobs) -> None:
    assert "unchanged" in jobs.cluster.apply(CRD)
