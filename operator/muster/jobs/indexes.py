"""Sets of indexes as a short text, as an Indexed Job's status has them: `0,3-5`."""

from collections.abc import Iterable


def pack(indexes: Iterable[int]) -> str:
    """The text of a set."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def unpack(text: str) -> frozenset[int]:
    """The set of a text."""
    ends = [part.split("-") for part in text.split(",") if part]
    return frozenset(index for end in ends for index in range(int(end[0]), int(end[-1]) + 1))
