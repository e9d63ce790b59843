"""Reading recordings: what is accepted, what is refused, and where the error is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from conversations.lab.records import Record, RecordError, list_calls, read_records
from tests.lab.samples import answer, call, line, reading, record, result, text, user


def read(path: Path, *lines: str | bytes) -> list[Record | RecordError]:
    raw = b"\n".join(one.encode() if isinstance(one, str) else one for one in lines)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return list(read_records(path))


@pytest.mark.parametrize("name", ["talk.jsonl", "talk.jsonl.gz"])
def test_every_line_is_a_record_packed_or_not(tmp_path: Path, name: str) -> None:
    found = read(tmp_path / name, line(reading(2)), "", line(reading(1), id="other"))
    assert [one.id for one in found if isinstance(one, Record)] == ["talk", "other"]


def test_messages_keep_their_places_and_texts_become_blocks() -> None:
    one = record(
        [
            {"role": "user", "content": "Hello"},
            answer("", "Hi", text("there") | {"cache_control": {"type": "ephemeral"}, "id": "x1"}),
            user("  "),
            answer("Still there?"),
            user("Yes"),
            answer(call("toolu_1", "a")),
            user(result("toolu_1", "text")),
            answer("Good"),
        ]
    )
    assert [m.kind for m in one.messages] == [
        "prompt", "answer", "prompt", "answer", "prompt", "answer", "results", "answer",
    ]  # fmt: skip
    assert one.messages[1].content == (
        '[{"type":"text","text":"Hi"},{"type":"text","text":"there"}]'
    )
    assert one.messages[2].is_empty


def test_an_answer_behind_an_answer_is_no_call() -> None:
    one = record([user("Hello"), answer("Hi"), answer("there"), user("Bye"), answer("Bye")])
    assert list_calls(one.messages) == (1, 4)


BAD: dict[str, Any] = {
    "not JSON": "{",
    "is not a JSON object": "[]",
    '"id" must be a text': json.dumps({"messages": []}),
    '"messages" must be a list': json.dumps({"id": "x", "messages": "y"}),
    "has no answer": line([user("Hello")]),
    'messages.0: "role" must be': line([{"role": "system", "content": "x"}]),
    'messages.0: "content" must be': line([{"role": "user", "content": [1]}]),
    "unanswered": line([user("x"), answer(call("toolu_1", "a")), user("y"), answer("z")]),
    "unexpected": line([user(result("toolu_1", "a")), answer("z")]),
    "first at": line([answer("x"), user("y"), answer("z")]),
    '"tools" must be': line(reading(1), tools=["x"]),
    '"system" must be': line(reading(1), system=3),
    "facts.0: needs": line(reading(1), facts=[{"fact": "x"}]),
    "facts.0: must be used": line(
        reading(1), facts=[{"fact": "x", "first_seen_message": 1, "used_at_message": 2}]
    ),
    "recorded_usage.0": line(reading(1), recorded_usage=[{"input": 3}]),
    "recorded_usage.0: counts": line(reading(1), recorded_usage=[{"message": 1, "input": "3"}]),
    "is no timestamp": line([user("x") | {"timestamp": "soon"}, answer("y")]),
}


@pytest.mark.parametrize("words", BAD)
def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path, words: str) -> None:
    found = read(tmp_path / "talk.jsonl", BAD[words], line(reading(1)))
    assert isinstance(found[0], RecordError)
    assert found[0].where == f"{tmp_path}/talk.jsonl:1"
    assert words in found[0].problem
    assert isinstance(found[1], Record)


def test_what_cannot_be_read_is_an_error_in_its_place(tmp_path: Path) -> None:
    missing = list(read_records(tmp_path / "none.jsonl"))
    assert len(missing) == 1
    assert str(missing[0]).startswith(f"{tmp_path}/none.jsonl:1: cannot be read: [Errno 2]")
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(line(reading(1)).encode())[:-9])
    assert isinstance(list(read_records(path))[-1], RecordError)
    assert isinstance(read(tmp_path / "latin.jsonl", b'{"id":"\xff"}')[0], RecordError)


def test_facts_and_recorded_counts_are_taken_over() -> None:
    one = record(
        reading(2),
        facts=[{"fact": "part 0", "first_seen_message": 0, "used_at_message": 5}],
        recorded_usage=[{"message": 1, "input": 3, "cache_read": 4, "cache_write": None}],
    )
    assert (one.facts[0].text, one.facts[0].is_sole) == ("part 0", False)
    assert one.readings[0].context == 7
