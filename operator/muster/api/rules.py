"""Constraints that a plain schema cannot say.

Each is written for the API server (CEL) and for Muster's own reading of a manifest side by side, with one sentence for
the user, so that the two cannot drift apart unseen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from muster.api.model import Strict


@dataclass(frozen=True)
class Rule:
    """A constraint: of a `Ruled` model, or of one value (`Annotated[str, Rule(...)]`).

    `cel` holds over `self`. `holds` is the same in Python; None for a rule about a change (`oldSelf`), which only the
    API server sees. `at` is the field below `self` that the API server names in its error.
    """

    message: str
    cel: str
    holds: Callable[[Any], bool] | None = None
    at: str | None = None

    def as_validation(self) -> dict[str, str]:
        """One entry of `x-kubernetes-validations`."""
        where = {"fieldPath": self.at} if self.at else {}
        return {"rule": self.cel, "message": self.message, **where}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "x-kubernetes-validations": [self.as_validation()]}

    def _check(self, value: Any) -> Any:
        if self.holds is not None and not self.holds(value):
            raise ValueError(self.message)
        return value


class Ruled(Strict):
    """A model with constraints over more than one of its fields."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _obey(self) -> Self:
        broken = [rule.message for rule in self.rules if rule.holds is not None and not rule.holds(self)]
        if broken:
            raise ValueError("; ".join(broken))
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler.resolve_ref_schema(handler(schema))
        if cls.rules:
            described["x-kubernetes-validations"] = [rule.as_validation() for rule in cls.rules]
        return described
