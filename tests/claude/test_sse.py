from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.claude import sse
from conversations.claude.sse import EventReader
from conversations.context.errors import WireError

events = st.lists(
    st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3),
    max_size=5,
)


def written(values: list[dict[str, Any]], end: str) -> bytes:
    lines = (f"event: x{end}: comment{end}data: {json.dumps(value)}{end}{end}" for value in values)
    return "".join(lines).encode()


def read(*chunks: bytes) -> list[dict[str, Any]]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@given(events, st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 400), max_size=8))
def test_any_chunking_gives_the_same_events(
    values: list[dict[str, Any]], end: str, cuts: list[int]
) -> None:
    raw = written(values, end)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    chunks = [raw[a:b] for a, b in pairwise(edges)]
    assert read(*chunks) == values
    assert read(*(raw[at : at + 1] for at in range(len(raw)))) == values


def test_data_over_several_lines_is_one_event() -> None:
    assert read(b'data: {"a":\ndata:1}\n\n') == [{"a": 1}]


def test_an_event_that_did_not_end_is_none() -> None:
    assert read(b'data: {"a":1}\n') == []


@pytest.mark.parametrize(
    "bad", [b"data: {oops\n\n", b"data: [1]\n\n", b"data: \xff\xfe\n\n", b'data: {"a":NaN}\n\n']
)
def test_events_before_a_broken_one_are_given_first(bad: bytes) -> None:
    found = EventReader().feed(b'data: {"a":1}\n\n' + bad)
    assert next(found) == {"a": 1}
    with pytest.raises(WireError):
        next(found)


@pytest.mark.parametrize("line", [b"data: " + b"x" * 60, b"data: " + b"x" * 30 + b"\n"])
def test_an_event_without_end_is_refused(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MOST_BYTES", 100)
    with pytest.raises(WireError, match="too long"):
        read(*[line] * 4)


def test_a_long_line_in_small_pieces_costs_its_length_once() -> None:
    whole = b'data: {"a":"' + b"x" * 2_000_000 + b'"}\n\n'
    pieces = [whole[at : at + 100] for at in range(0, len(whole), 100)]
    assert len(read(*pieces)[0]["a"]) == 2_000_000
