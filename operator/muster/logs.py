"""The operator's log: one job's story can be read by its name and uid, as text for people or as JSON for collectors."""

import contextvars
import json
import logging
import re
from datetime import UTC, datetime
from typing import NamedTuple


class Subject(NamedTuple):
    """The job that the lines of a reconcile are about."""

    namespace: str
    name: str
    uid: str


subject: contextvars.ContextVar[Subject | None] = contextvars.ContextVar("subject", default=None)
"""Set by the controller for the time of one reconcile, and inherited by the tasks it starts."""


_RETRY = re.compile(r"Request attempt #(\d+)\S* failed; will retry: (\S+ [^?\s]+)")
_RETRY_SECONDS = 60.0


class _Seldom(logging.Filter):
    """Lets the watch runtime say at once, and then once a minute, that it cannot reach something: it tries every few
    seconds, with several watches side by side."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        retry = _RETRY.match(record.getMessage()) if record.name.startswith("kopf.") else None
        if retry is None:
            return True
        attempt, request = retry.groups()
        if attempt != "1" and record.created - self._said.get(request, 0.0) < _RETRY_SECONDS:
            return False
        self._said[request] = record.created
        return True


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if about := subject.get():
            line |= {"namespace": about.namespace, "job": about.name, "uid": about.uid}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about = subject.get()
        where = f" [{about.namespace}/{about.name} {about.uid}]" if about else ""
        line = f"{self.formatTime(record)} {record.levelname:7} {record.name}{where} {record.getMessage()}"
        return line + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


def configure(log_format: str, level: str) -> None:
    """Send the whole process's log to stderr; that of the libraries from `warning` on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    handler.addFilter(_Seldom())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("kopf", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
