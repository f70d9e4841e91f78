"""The training container's own exit codes. All of them count: which ones are worth a retry, only the script's author
knows.
"""

from muster.jobs.failures.verdict import Failure, Verdict
from muster.jobs.model import Pod
from muster.jobs.reasons import Reason

_HINTS = {
    126: "the command is not executable",
    127: "the command was not found in the image",
    134: "it aborted (SIGABRT)",
    135: "a bus error (SIGBUS): a full /dev/shm is the usual cause; mount an emptyDir of medium Memory there",
    137: "it was killed (SIGKILL): by the node's out-of-memory killer, unless somebody did it by hand",
    139: "a segmentation fault (SIGSEGV)",
    143: "it was told to end (SIGTERM)",
}
_LAST_WORDS = 300
"""Characters of the termination message that are shown."""


def failure(pod: Pod) -> Failure | None:
    """Counted."""
    end = pod.termination
    if end is None:
        return None
    if pod.reason == "DeadlineExceeded":
        return Failure(
            Verdict.COUNTED, Reason.EXITED, f"{pod.name} ran longer than its template's activeDeadlineSeconds"
        )
    hint = f", {_HINTS[end.exit_code]}" if end.exit_code in _HINTS else ""
    words = end.message.strip()[-_LAST_WORDS:]
    return Failure(
        Verdict.COUNTED,
        Reason.EXITED,
        f"{pod.name} exited with {end.exit_code}{hint}" + (f": {words}" if words else ""),
    )
