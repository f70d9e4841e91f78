"""Whether the API server would take a status: the CRD's own schema, with the formats that it checks."""

from typing import Any

import jsonschema
from muster.api import crd

_formats = jsonschema.FormatChecker(formats=())


@_formats.checks("int64")
def _fits(value: Any) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


STATUS = jsonschema.Draft202012Validator(crd.job_schema()["properties"]["status"], format_checker=_formats)
