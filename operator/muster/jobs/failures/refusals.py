"""What the API server, a quota or a webhook refuses to make."""

from muster.jobs.failures.verdict import Failure, Verdict
from muster.jobs.model import Refusal
from muster.jobs.reasons import Reason


def failure(refusal: Refusal) -> Failure:
    """Permanent refusals fail the job. The others are tried again: quotas are raised, webhooks come back, permissions
    are given.
    """
    text = f"{refusal.action}: {refusal.message}"
    if refusal.permanent:
        return Failure(Verdict.PERMANENT, Reason.REJECTED, text)
    if "exceeded quota" in refusal.message:
        return Failure(Verdict.DISRUPTION, Reason.QUOTA_EXCEEDED, text)
    if refusal.reason in ("AlreadyExists", "Conflict", "NameTaken"):
        return Failure(Verdict.DISRUPTION, Reason.NAME_TAKEN, text)
    if refusal.reason == "Forbidden" and "cannot " in refusal.message and "User " in refusal.message:
        return Failure(Verdict.DISRUPTION, Reason.NOT_PERMITTED, text)
    return Failure(Verdict.DISRUPTION, Reason.REFUSED, text)
