"""The CRD is what the models say, and what Kubernetes wants of a CRD."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from muster.api import crd
from support.job_constraints import CHANGES, CONSTRAINTS

TREE = Path(__file__).resolve().parents[3]
SCHEMA = crd.job_schema()


def _generated() -> dict[str, str]:
    source = importlib.util.spec_from_file_location("generate", TREE / "dev" / "generate.py")
    assert source is not None
    assert source.loader is not None
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    files: dict[str, str] = module.outputs()
    return files


GENERATED = _generated()


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a structural schema, with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


NODES = [(path, node) for path, node in walk(SCHEMA) if path.startswith((".spec", ".status"))]


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_up_to_date(path: str) -> None:
    assert (TREE / path).read_text() == GENERATED[path], f"{path} is stale: run `python dev/generate.py`"


@pytest.mark.scenario("D6")
def test_the_crd_fits_the_annotation_that_kubectl_apply_writes() -> None:
    assert len(json.dumps(crd.generate())) < 128 * 1024  # the limit of all annotations together is 256 KiB


def test_every_text_list_and_map_is_bounded() -> None:
    bounds = {"string": ("maxLength", "enum", "format"), "array": ("maxItems",)}
    unbounded = [
        path
        for path, node in NODES
        if (wanted := bounds.get(node.get("type", ""))) and not any(bound in node for bound in wanted)
    ]
    unbounded += [path for path, node in NODES if "additionalProperties" in node and "maxProperties" not in node]
    assert unbounded == []


def test_only_keywords_of_a_structural_schema_are_left() -> None:
    known = crd.KEPT | {"properties", "items", "additionalProperties"}
    strange = {key for _, node in NODES for key in node if key not in known and not key.startswith("x-kubernetes-")}
    assert strange == set()
    assert [path for path, node in NODES if "type" not in node and "x-kubernetes-int-or-string" not in node] == []


def test_there_is_no_float() -> None:
    assert [path for path, node in NODES if node.get("type") == "number"] == []


def test_unknown_fields_are_kept_only_in_pod_specs() -> None:
    kept = [path for path, node in NODES if node.get("x-kubernetes-preserve-unknown-fields")]
    assert kept
    assert [path for path in kept if ".template.spec" not in path] == []


def test_every_field_that_a_user_writes_is_described() -> None:
    assert [
        path
        for path, node in NODES
        if path.startswith(".spec.") and path[-1] not in "]}" and not node.get("description")
    ] == []


def test_the_status_has_no_defaults_and_only_a_condition_must_be_whole() -> None:
    status = {path: node for path, node in NODES if path.startswith(".status")}
    assert [path for path, node in status.items() if "default" in node] == []
    assert [path for path, node in status.items() if "required" in node] == [".status.conditions[]"]


def test_conditions_merge_by_type() -> None:
    conditions = SCHEMA["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_every_rule_has_an_example_that_it_refuses() -> None:
    rules = [rule for path, node in NODES for rule in node.get("x-kubernetes-validations", [])]
    shown = [case.message for case in (*CONSTRAINTS, *CHANGES)]
    assert [rule["message"] for rule in rules if not any(message in rule["message"] for message in shown)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "integer", "title": "A"}},
        },
    ],
)
def test_references_and_optional_fields_become_plain_fields(schema: dict[str, Any]) -> None:
    assert crd.structural(schema) == {"type": "object", "properties": {"a": {"type": "integer", "format": "int64"}}}


def test_an_object_with_defaults_inside_is_itself_a_default() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "integer", "default": 1}}}
    field = crd.structural({"type": "object", "properties": {"a": inner}})["properties"]["a"]
    assert field["default"] == {}
    required = crd.structural({"type": "object", "properties": {"a": inner}, "required": ["a"]})["properties"]["a"]
    assert "default" not in required
