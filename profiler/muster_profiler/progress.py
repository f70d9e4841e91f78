"""Tells how the profile comes along, on standard error: sentences, or one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
from typing import Any, Callable

Tell = Callable[..., None]


def none(event: str, **facts: Any) -> None:
    """Says nothing."""


def as_json(event: str, **facts: Any) -> None:
    print(json.dumps(dict({"event": event}, **facts)), file=sys.stderr, flush=True)


def plain(event: str, **facts: Any) -> None:
    text = _sentence(event, facts)
    if text:
        print("muster-profile: " + text, file=sys.stderr, flush=True)


def _sentence(event: str, facts: dict[str, Any]) -> str | None:
    batch = "mini-batch %s" % (facts.get("miniBatch") or "of the script")
    state = facts.get("state")
    if event == "begin":
        return "%d candidate(s): %s" % (
            facts["candidates"],
            ", ".join(map(str, facts["miniBatches"])) or "the script's own",
        )
    if event == "trial" and state == "started":
        return "%s (%d of %d)" % (batch, facts["trial"], facts["trials"])
    if event == "trial" and state == "done":
        return "%s: compute %.1f ms, overhead %.1f ms an iteration, peak %.2f GiB%s" % (
            batch,
            facts["computeMicroseconds"] / 1e3,
            facts["overheadMicroseconds"] / 1e3,
            facts["peakMemoryBytes"] / (1 << 30),
            "" if facts["steady"] else ", not steady",
        )
    if event == "trial" and state == "failed":
        return "%s: %s" % (batch, facts["problem"])
    if event == "convolutions":
        return "convolutions at mini-batch %s %s" % (
            facts["miniBatch"],
            facts["setting"] and "with " + facts["setting"],
        )
    if event == "largest":
        return "mini-batch %s: whether it fits" % facts["miniBatch"]
    if event == "network":
        return "measuring the network against %s" % facts["peer"]
    if event == "end":
        return "done in %.0f s" % facts["seconds"]
    return None


WAYS: dict[str, Tell] = {"plain": plain, "none": none, "json": as_json}
