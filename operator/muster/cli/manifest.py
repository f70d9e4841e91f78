"""From a YAML file to TrainingJobs, with errors that name the file, the line and the field.

What is refused here is what the cluster would refuse, only earlier and by line.
"""

import difflib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from muster.api import labels
from muster.api.crd import NAME_RULE
from muster.api.job import TrainingJobSpec
from muster.api.model import Loc, complaint, dotted
from muster.cli.exits import Code, Exit

_NAME = re.compile(rf"(?=.{{1,{labels.LONGEST_JOB_NAME}}}$)[a-z]([-a-z0-9]*[a-z0-9])?")
_METADATA = {"name", "namespace", "labels", "annotations", "generateName", "finalizers"}


class ManifestError(Exit):
    """What is wrong with a file: one line of text a problem, each with the file's line where that is known."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.USAGE, message)


@dataclass(frozen=True)
class Manifest:
    """One TrainingJob of a file. `body` is the object as written."""

    name: str
    namespace: str | None
    labels: tuple[tuple[str, str], ...]
    spec: TrainingJobSpec
    body: dict[str, Any]


@dataclass(frozen=True)
class Documents:
    """What a file holds: TrainingJobs, data of ConfigMaps (a job can name one as its profile), kinds of the rest."""

    jobs: tuple[Manifest, ...]
    config_maps: dict[str, dict[str, str]] = field(default_factory=dict)
    others: tuple[str, ...] = ()


def load(path: Path) -> Documents:
    """Read a file (`-`: standard input). ManifestError with all that is wrong in it, or without a TrainingJob."""
    where, text = _read(path)
    try:
        nodes = [
            node for node in yaml.compose_all(text, Loader=yaml.CSafeLoader) if node.tag != "tag:yaml.org,2002:null"
        ]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ManifestError(f"{where}:{mark.line + 1 if mark else 1}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ManifestError(f"{where}: not YAML: {error}") from None
    jobs: list[Manifest] = []
    config_maps: dict[str, dict[str, str]] = {}
    others: list[str] = []
    problems: list[str] = []
    for node in nodes:
        document = _Document(where, node)
        kind = document.body.get("kind")
        if kind == "ConfigMap":
            name = (document.body.get("metadata") or {}).get("name", "")
            config_maps[name] = document.body.get("data") or {}
        elif kind == labels.KIND or not kind or document.body.get("apiVersion") == labels.API_VERSION:
            if found := document.problems():
                problems += found
            else:
                jobs.append(document.manifest())
        else:
            others.append(str(kind))
    if problems:
        raise ManifestError("\n".join(problems))
    if not jobs:
        raise ManifestError(f"{where}: no {labels.KIND} in it" + (f", only {', '.join(others)}" if others else ""))
    return Documents(tuple(jobs), config_maps, tuple(others))


def _read(path: Path) -> tuple[str, str]:
    if str(path) == "-":
        import sys

        return "standard input", sys.stdin.read()
    try:
        return str(path), path.read_text()
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ManifestError(f"{path}: not a text file") from None


class _Document:
    """One YAML document of `where`, with the way from a field's path to its line."""

    def __init__(self, where: str, node: yaml.Node) -> None:
        self._where, self._node = where, node
        loader = yaml.CSafeLoader("")
        try:
            body = loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else node.start_mark.line + 1
            raise ManifestError(f"{where}:{line}: not YAML: {error.problem}") from None
        finally:
            loader.dispose()
        if not isinstance(body, dict):
            raise ManifestError(f"{where}:{node.start_mark.line + 1}: not a Kubernetes object: a mapping is expected")
        try:
            # A Kubernetes object is JSON: dates and the like of YAML go as text.
            self.body: dict[str, Any] = json.loads(json.dumps(body, default=str, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ManifestError(f"{where}:{node.start_mark.line + 1}: not a Kubernetes object: {error}") from None

    def manifest(self) -> Manifest:
        """Of a document without problems."""
        metadata = self.body["metadata"]
        return Manifest(
            name=metadata["name"],
            namespace=metadata.get("namespace"),
            labels=tuple(sorted((metadata.get("labels") or {}).items())),
            spec=TrainingJobSpec.model_validate(self.body["spec"]),
            body=self.body,
        )

    def problems(self) -> list[str]:
        """All that is wrong with it, in the order of the file's lines."""
        found = [*self._twice(self._node, ()), *self._of_envelope()]
        spec = self.body.get("spec")
        if isinstance(spec, dict):
            try:
                # Strict as the API server is: "80" is no number. From JSON, so that an enum's value may be a string.
                TrainingJobSpec.model_validate_json(json.dumps(spec), strict=True)
            except ValidationError as error:
                found += self._of_spec(error, ("spec",))
        return [text for _, text in sorted(dict.fromkeys(found), key=lambda each: each[0])]

    def _of_envelope(self) -> list[tuple[int, str]]:
        body, found = self.body, []
        for key, expected in (("apiVersion", labels.API_VERSION), ("kind", labels.KIND)):
            if body.get(key) != expected:
                found.append(
                    self._at(
                        (key,),
                        f"must be {expected}, not {body.get(key)}"
                        if key in body
                        else f"missing: write {key}: {expected}",
                    )
                )
        allowed = ["apiVersion", "kind", "metadata", "spec", "status"]
        found += [self._unknown((key,), allowed) for key in body if key not in allowed]
        metadata = body.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            found.append(self._at(("metadata", "name"), "missing: a job needs a name"))
        else:
            found += [self._unknown(("metadata", key), sorted(_METADATA)) for key in metadata if key not in _METADATA]
            if not _NAME.fullmatch(str(metadata["name"])):
                found.append(self._at(("metadata", "name"), NAME_RULE.message))
        if not isinstance(body.get("spec"), dict):
            found.append(self._at(("spec",), "missing: goal and worker are needed"))
        return found

    def _of_spec(self, error: ValidationError, prefix: Loc) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for each in error.errors(include_url=False):
            loc: Loc = (*prefix, *each["loc"])
            inner = (each.get("ctx") or {}).get("error")
            if isinstance(inner, ValidationError):  # of the pod spec, which is a model within a validator
                found += self._of_spec(inner, loc)
            elif each["type"] == "extra_forbidden":
                found.append(self._unknown(loc, _fields(TrainingJobSpec, loc[1:-1])))
            else:
                found.append(self._at(loc, complaint(each)))
        return found

    def _unknown(self, loc: Loc, allowed: list[str]) -> tuple[int, str]:
        close = difflib.get_close_matches(str(loc[-1]), allowed, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(allowed))}"
        return self._at(loc, f"unknown field; {hint}")

    def _twice(self, node: yaml.Node, loc: Loc) -> list[tuple[int, str]]:
        """Keys that a mapping has twice: YAML would silently keep the last."""
        found: list[tuple[int, str]] = []
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in seen and name != "<<":
                    found.append(
                        (key.start_mark.line + 1, self._text(key.start_mark.line + 1, (*loc, name), "given twice"))
                    )
                seen.add(name)
                found += self._twice(value, (*loc, name))
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                found += self._twice(value, (*loc, index))
        return found

    def _at(self, loc: Loc, message: str) -> tuple[int, str]:
        line = self._line(loc)
        return line, self._text(line, loc, message)

    def _text(self, line: int, loc: Loc, message: str) -> str:
        return f"{self._where}:{line}: {dotted(loc)}: {message}"

    def _line(self, loc: Loc) -> int:
        """The line of the field, or of the nearest that surrounds it."""
        node, line = self._node, self._node.start_mark.line + 1
        for part in loc:
            if isinstance(node, yaml.MappingNode):
                pair = next(((key, value) for key, value in node.value if key.value == part), None)
                if pair is None:
                    break
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
        return line


def _fields(model: Any, loc: Loc) -> list[str]:
    """The names that a user may write at `loc` below `model`."""
    for part in loc:
        if isinstance(part, int):
            continue
        fields = {info.alias or name: info for name, info in model.model_fields.items()} if _is_model(model) else {}
        if part in fields:
            model = _model_in(fields[part].annotation)
    return [info.alias or name for name, info in model.model_fields.items()] if _is_model(model) else []


def _is_model(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


def _model_in(annotation: Any) -> Any:
    """The model within `Model | None`, `list[Model]` and the like."""
    if get_origin(annotation) in (Union, UnionType, list):
        return next((found for each in get_args(annotation) if _is_model(found := _model_in(each))), None)
    return annotation
