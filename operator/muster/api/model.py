"""The base of every model that crosses Muster's border, so that spelling and strictness are decided in one place."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

Loc = tuple[str | int, ...]
_PLAIN = {
    "extra_forbidden": "unknown field",
    "missing": "missing",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "model_attributes_type": "must be an object",
}


class Strict(BaseModel):
    """Written by users: frozen, camelCase outside, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def dump(self) -> dict[str, Any]:
        """As a Kubernetes object's part: camelCase keys, JSON types, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Tolerant(Strict):
    """Written by Muster, or by a profiler of another version: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")


def _whole_seconds(value: datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(limit: int) -> Any:
    return BeforeValidator(lambda value: value if len(value) <= limit else value[: limit - 1] + "…")


Time = Annotated[
    datetime,
    PlainSerializer(_whole_seconds, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A point in time (UTC) as `metav1.Time` writes it."""

Whole = Annotated[int, BeforeValidator(lambda value: min(value, 2**63 - 1) if isinstance(value, int) else value)]
"""A number that is cut to 64 bits rather than refused: no API server takes a longer one."""

Text = Annotated[str, Field(max_length=1024), _cut(1024)]
"""A sentence for people, cut rather than refused when it is too long for the status."""


def dotted(loc: Loc) -> str:
    """A path as kubectl writes it: spec.worker.template.spec.containers[0].image."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def complaint(problem: ErrorDetails) -> str:
    """What is wrong, for a user: pydantic's words without those of Python."""
    said = _PLAIN.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    given = problem.get("input")
    if problem["type"] == "string_type" and isinstance(given, (bool, int, float)):
        said += f': write it in quotes, "{str(given).lower()}"'
    return said[:1].lower() + said[1:]


def complaints(error: ValidationError, *, at: str) -> str:
    """All that is wrong, each with its field, below the field `at`."""
    return "; ".join(f"{dotted((at, *each['loc']))}: {complaint(each)}" for each in error.errors(include_url=False))
