"""The pod template of a role: a pod spec kept whole, typed where Muster reads it so that mistakes are refused early."""

import re
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from muster.api.labels import GPU_RESOURCE, TRAINING_CONTAINER
from muster.api.model import Strict
from muster.api.rules import Rule, Ruled

ARGUMENT_LENGTH = 131_072
"""The longest single argument or variable that Linux hands to a process (MAX_ARG_STRLEN)."""

_DEEPEST = 50
"""Levels of objects and lists, of which a pod has a dozen. The schema cannot bound what it leaves open, and what comes
after it walks the whole of a template.
"""

Argument = Annotated[str, Field(max_length=ARGUMENT_LENGTH)]


class _Open(BaseModel):
    """Some fields of a Kubernetes object; the others are kept as they are."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)


class EnvVar(_Open):
    """As in a pod."""

    name: str = Field(min_length=1, max_length=1024, description="As in a pod.")
    value: Argument | None = Field(None, description="A string: quote numbers.")


Gpus = Annotated[
    int | str,
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": 16}),
    Rule(
        f"{GPU_RESOURCE} is a whole number of GPUs",
        cel="string(self).matches('^[0-9]{1,4}$')",
        holds=lambda amount: re.fullmatch("[0-9]{1,4}", str(amount)) is not None,
    ),
]


class ResourceAmounts(_Open):
    """As in a pod."""

    gpus: Gpus | None = Field(None, alias=GPU_RESOURCE, description="GPUs of each pod of the role.")


class Resources(_Open):
    """As in a pod."""

    limits: ResourceAmounts | None = None
    requests: ResourceAmounts | None = None


class Container(_Open):
    """A container as in a pod."""

    name: str = Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", description="As in a pod.")
    image: str | None = Field(None, min_length=1, max_length=4096, description="As in a pod.")
    command: list[Argument] | None = Field(
        None,
        max_length=1024,
        description="For example [python, train.py]. $(MUSTER_MINIBATCH) is filled in.",
    )
    args: list[Argument] | None = Field(None, max_length=1024, description="$(MUSTER_MINIBATCH) is filled in.")
    env: list[EnvVar] | None = Field(None, max_length=1024, description="$(MUSTER_MINIBATCH) is filled in.")
    resources: Resources | None = None


class PodSpec(_Open):
    """An ordinary pod spec. Muster reads the fields below; every other field of a pod is kept and reaches the pods."""

    containers: list[Container] = Field(
        min_length=1,
        max_length=32,
        description=f"The one named {TRAINING_CONTAINER}, or else the only one, trains.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [container.name for container in self.containers]
        if len(set(names)) < len(names):
            raise ValueError("two containers have one name")
        return self


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _checked(spec: dict[str, Any]) -> dict[str, Any]:
    if _too_deep(spec):
        raise ValueError(f"a part of it is nested more than {_DEEPEST} levels deep, as nothing in a pod is")
    PodSpec.model_validate(spec)
    return spec


def _schema_of_pod_spec(_: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    return handler(PodSpec.__pydantic_core_schema__)


class TemplateMetadata(Strict):
    """Labels and annotations of a pod template; all else about its metadata is Muster's."""

    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default_factory=dict, max_length=64, description="Labels of every pod of the role."
    )
    annotations: dict[str, Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=dict, max_length=64, description="Annotations of every pod of the role."
    )


def _trains_in_one(template: "PodTemplate") -> bool:
    try:
        return bool(template.training_container)
    except LookupError:
        return False


class PodTemplate(Ruled):
    """A pod template as in a Deployment. `spec` is an ordinary pod spec, kept whole."""

    rules = (
        Rule(
            f"of several containers one must be named {TRAINING_CONTAINER}: the one that trains",
            cel=f"self.spec.containers.size() == 1 || self.spec.containers.exists(c, c.name == '{TRAINING_CONTAINER}')",
            holds=_trains_in_one,
            at=".spec.containers",
        ),
    )

    metadata: TemplateMetadata = Field(default_factory=TemplateMetadata)
    spec: Annotated[
        dict[str, Any],
        AfterValidator(_checked),
        GetPydanticSchema(get_pydantic_json_schema=_schema_of_pod_spec),
    ]

    @property
    def training_container(self) -> dict[str, Any]:
        """The container named `train`, or else the only one; LookupError where neither exists."""
        containers: list[dict[str, Any]] = self.spec.get("containers") or []
        named = [container for container in containers if container.get("name") == TRAINING_CONTAINER]
        if not named and len(containers) != 1:
            raise LookupError(f"spec.containers: name one of the {len(containers)} containers {TRAINING_CONTAINER!r}")
        return (named or containers)[0]

    @property
    def gpus(self) -> int:
        """GPUs that one pod's training container holds; 0 on a CPU."""
        resources = self.training_container.get("resources") or {}
        amounts = [(resources.get(kind) or {}).get(GPU_RESOURCE) for kind in ("limits", "requests")]
        return int(amounts[0] or amounts[1] or 0)
