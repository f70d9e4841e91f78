"""JSON of any depth is read: what is nested too deep is cut out, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from muster.cluster import nesting

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + '"}]\\"{["' + closing * depth


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
@pytest.mark.parametrize("depth", [1, 100, 10_000])
def test_what_stands_beside_the_depths_is_whole(opening: str, closing: str, depth: int) -> None:
    deep = nested(opening, closing, depth)
    text = json.dumps([{"name": 'a "{[\\'}, "DEEP", {"b": [1, "}"]}]).replace('"DEEP"', f"[{deep}, 2, {deep}]")
    found = nesting.loads(text.encode())
    assert found[0] == {"name": 'a "{[\\'}
    assert found[2] == {"b": [1, "}"]}
    assert found[1][1] == 2


@given(VALUES)
def test_json_that_is_not_deep_is_cut_nowhere(value: object) -> None:
    text = json.dumps(value)
    assert nesting._cut(text) == text


def test_every_reader_of_the_process_can_be_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json.JSONDecoder, "decode", json.JSONDecoder.decode)  # put back at the end
    text = nested("[", "]", 10_000)
    with pytest.raises(RecursionError):
        json.loads(text)
    nesting.install()
    assert isinstance(json.loads(text), list)
