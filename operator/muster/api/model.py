"""The base of every model that crosses Muster's border, so that spelling and strictness are decided in one place."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel


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

Text = Annotated[str, Field(max_length=1024), _cut(1024)]
"""A sentence for people, cut rather than refused when it is too long for the status."""
