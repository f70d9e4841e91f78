"""The words in which a failure is judged."""

from dataclasses import dataclass
from enum import StrEnum

from muster.jobs.reasons import Reason


class Verdict(StrEnum):
    """What follows from a failure."""

    COUNTED = "Counted"
    """A restart that counts against backoffLimit."""
    DISRUPTION = "Disruption"
    """A restart that does not count: neither the script nor its spec did it."""
    PERMANENT = "Permanent"
    """The job has failed: another attempt would end the same way."""


@dataclass(frozen=True)
class Failure:
    """How a pod ended, for people, and what follows."""

    verdict: Verdict
    reason: Reason
    message: str


@dataclass(frozen=True)
class Blocked:
    """Why a pod does not run. With `expires`, it has failed when that lasts longer than a start may take."""

    reason: Reason
    message: str
    expires: bool
    hopeless: bool = False
