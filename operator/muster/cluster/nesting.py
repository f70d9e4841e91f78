"""JSON that is nested deeper than Python's parser goes.

A pod template may hold anything, and the API server takes thousands of levels of it. Python's parser raises
RecursionError at about a thousand, for a list or a watch as a whole: one job would keep the operator from everybody's.
So what is nested too deep is cut out here, and the models refuse what is left as still far deeper than any pod.
"""

import json
import re
from typing import Any

_DEEPEST = 200
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]')
_decode = json.JSONDecoder.decode


def loads(data: bytes) -> Any:
    """As `json.loads`, without what is nested too deep."""
    try:
        return json.loads(data)
    except RecursionError:
        return json.loads(_cut(data.decode()))


def install() -> None:
    """For every reader of JSON in this process: kopf, and aiohttp for it, leave no choice of the parser."""
    json.JSONDecoder.decode = _decode_bounded  # type: ignore[assignment, method-assign]


def _decode_bounded(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return _decode(decoder, text)
    except RecursionError:
        return _decode(decoder, _cut(text))


def _cut(text: str) -> str:
    """The text with null for every object and list below the deepest level."""
    kept: list[str] = []
    depth = start = 0
    for token in _TOKENS.finditer(text):
        if token[0] in "{[":
            depth += 1
            if depth == _DEEPEST + 1:
                kept += text[start : token.start()], "null"
        elif token[0] in "}]":
            depth -= 1
            if depth == _DEEPEST:
                start = token.end()
    return "".join([*kept, text[start:]])
