"""What the API server can answer, as types that the caller acts on. Raised by the client alone."""

import re
from collections.abc import Mapping
from typing import Any

from muster.api import labels

_UNDECLARED = re.compile(r"\.(\S+): field not declared in schema")
"""How a server-side apply is refused, with 500, where the definition lacks a field."""


class ApiError(Exception):
    """An API request that did not succeed. `status` is the HTTP code, 0 where none came back."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason


class NotFound(ApiError):
    """The object, its namespace or its kind does not exist."""


class Conflict(ApiError):
    """Somebody was faster: the object exists already, or is not the version or the uid that the request names."""


class Throttled(ApiError):
    """The server asks to be left alone for `retry_after` seconds."""

    def __init__(self, message: str, *, status: int = 429, reason: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class Rejected(ApiError):
    """Understood and refused. `permanent`: it will be again; otherwise quota, permission or a webhook may change."""

    def __init__(self, message: str, *, status: int, reason: str = "", permanent: bool = False) -> None:
        super().__init__(message, status=status, reason=reason)
        self.permanent = permanent


class OldDefinition(ApiError):
    """The cluster's definition of TrainingJob lacks a field of the status that this operator writes."""


class Transient(ApiError):
    """The server, or the way to it, failed. Whether a write took effect is not known."""


def from_response(status: int, body: Mapping[str, Any], retry_after: str | None) -> ApiError:
    """What an answer of `status` (400 or above) means. `body` is its metav1.Status, empty where it had none."""
    message = str(body.get("message") or f"the API server answered {status}")
    reason = str(body.get("reason") or "")
    if status == 404:
        return NotFound(message, status=status, reason=reason)
    if status == 409:
        return Conflict(message, status=status, reason=reason)
    if status == 429 or (status == 503 and retry_after):
        return Throttled(message, status=status, reason=reason, retry_after=_seconds(retry_after))
    if status == 500 and "calling webhook" in message:
        return Rejected(message, status=status, reason="WebhookFailed")
    if status == 500 and "request is too large" in message:  # etcd's word on an object of more than 1.5 MiB
        return Rejected(message, status=status, reason="RequestEntityTooLarge", permanent=True)
    if unknown := _UNDECLARED.findall(message):
        message = (
            f"the cluster's CustomResourceDefinition {labels.PLURAL}.{labels.GROUP} is older than this operator: apply "
            f"the files of crds/ of the operator's release (it lacks {', '.join(unknown)})"
        )
        return OldDefinition(message, status=status, reason="OldDefinition")
    if status in {401, 408, 410} or status >= 500:
        return Transient(message, status=status, reason=reason)
    return Rejected(message, status=status, reason=reason, permanent=status != 403)


def _seconds(retry_after: str | None) -> float:
    try:
        return min(60.0, max(0.1, float(retry_after or 1)))
    except ValueError:  # an HTTP date: no API server sends one
        return 1.0
