"""How a command ends, other than well."""

from enum import IntEnum


class Code(IntEnum):
    """Exit codes, documented and stable."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INFEASIBLE = 3
    INTERRUPTED = 130  # as a shell reports Ctrl-C


class Exit(Exception):
    """Ends the command with an exit code and a message for the person at the terminal."""

    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message)
        self.code, self.message = code, message


def why(error: Exception) -> str:
    """What went wrong, without Python's number and path before it."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
