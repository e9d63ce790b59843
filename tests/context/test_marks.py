"""Cache breakpoints: always at the head, in the messages where the look-back would not reach."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.context.view import cache_breakpoints, edits, rules, wire
from conversations.context.view.edits import SpliceBlocks
from conversations.context.view.envelope import build_envelope, join_body
from conversations.context.view.view import Message, View
from tests.context.samples import (
    IMAGE,
    THOUGHT,
    Part,
    answer,
    prompt,
    result,
    results,
    text,
    use,
    view_of,
)

MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def parallel(count: int, name: str = "t") -> list[Any]:
    """Give one answer with a word and so many calls, and all their results."""
    ids = [f"{name}{n}" for n in range(count)]
    return [answer("At once.", *map(use, ids)), results(*map(result, ids))]


def stored(view: View) -> str:
    return wire.join(message.text for message in view.messages if not message.is_empty)


def marked(view: View) -> list[tuple[int, int]]:
    """Give the places of the marks, by message sent and block."""
    return [
        (at, number)
        for at, message in enumerate(json.loads(view.body))
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def test_while_a_read_reaches_back_the_body_is_the_stored_text() -> None:
    # 9 blocks of answer and 9 results are added behind the request before: one too few.
    assert 1 + 8 + 8 < cache_breakpoints.REACH < 1 + 9 + 9
    for view in (
        view_of(prompt(*"abcdefghijklmnopqrstuvwxyz")),
        view_of(prompt("a"), *parallel(8)),
        view_of(prompt("a"), *parallel(15), *parallel(2, "u")),
    ):
        assert view.body == stored(view)


def test_behind_a_wide_round_the_end_of_the_request_before_is_marked() -> None:
    view = view_of(prompt("a"), *parallel(2), *parallel(9, "u"))
    assert marked(view) == [(2, 1)]
    assert view.body.replace(cache_breakpoints.MARKS["5m"], "") == stored(view)
    rules.check_rules(view)


def test_many_prompts_behind_one_answer_are_as_far_as_many_results() -> None:
    said = [prompt("again") for _ in range(18)]
    assert marked(view_of(prompt("a", IMAGE), answer("b"), *said[:17])) == []
    assert marked(view_of(prompt("a", IMAGE), answer("b"), *said)) == [(0, 1)]


def test_the_mark_moves_on_with_the_next_request() -> None:
    view = view_of(prompt("a"), *parallel(12), *parallel(12, "u"))
    assert marked(view) == [(2, 11)]
    assert marked(view_of(prompt("a"), *parallel(12), answer("done"), prompt("b"))) == []


def test_answers_in_a_row_belong_to_the_request_that_ended_with_the_user() -> None:
    said = [prompt("a"), answer(*["b"] * 10), answer(*["c"] * 10), prompt("d")]
    assert marked(view_of(*said)) == [(0, 0)]


@pytest.mark.parametrize(
    ("last", "place"),
    [
        (["a", {"type": "search_result", "source": "s", "title": "t", "content": []}], [(0, 0)]),
        ([{"type": "container_upload", "file_id": "f"}], []),
        ([text("a") | MARK], [(0, 0)]),
        (["a", THOUGHT], [(0, 0)]),
    ],
)
def test_only_what_takes_a_mark_is_given_one(last: list[Part], place: list[Any]) -> None:
    view = view_of(("prompt", last), answer(*["b"] * 20), prompt("c"))
    assert marked(view) == place
    assert view.body.count("cache_control") == len(place)


def test_messages_without_blocks_are_never_marked_nor_counted() -> None:
    view = view_of(prompt("a"))
    for seq, kind in ((2, "prompt"), (3, "answer")):
        view = view.append(Message(seq, kind, "[]", 1))  # type: ignore[arg-type]
    assert marked(view) == []
    long = view.append(Message.parse(4, "prompt", wire.encode([text("b")] * 30)))
    assert marked(long) == [(0, 0)]
    assert marked(view_of(answer("b"), prompt("c"))) == []


def test_a_mark_is_in_no_message_and_follows_the_view_alone() -> None:
    view = view_of(prompt("a"), *parallel(12))
    again = View()
    for message in view.messages:
        again = again.append(Message(message.seq, message.kind, message.content, message.tokens))
    assert again.body == view.body != stored(view) == stored(again)
    assert all("cache_control" not in message.content for message in view.messages)
    cut = edits.apply(view, "compaction", [SpliceBlocks(3, 0, 1, (wire.encode(result("t0", "")),))])
    assert marked(cut) == [(0, 0)]


def test_tools_and_system_prompt_end_with_a_mark_that_binds_nothing() -> None:
    both = build_envelope(model="m", max_tokens=9, system="s", tools=[TOOL, TOOL])
    tools = build_envelope(model="m", max_tokens=9, system="  ", tools=[TOOL, TOOL])
    sent = [json.loads(join_body(made.text, "[]")) for made in (both, tools)]
    assert [found["system"] for found in sent] == [[text("s") | MARK], "  "]
    assert [found["tools"] for found in sent] == [[TOOL, TOOL], [TOOL, TOOL | MARK]]
    assert [found["cache_control"] for found in sent] == [MARK["cache_control"]] * 2
    for made, system in ((both, "s"), (tools, "  ")):
        plain = build_envelope(
            model="m", max_tokens=9, system=system, tools=[TOOL, TOOL], cached=False
        )
        assert "cache_control" not in plain.text
        assert (plain.binding, plain.overhead) == (made.binding, made.overhead)


def test_without_tools_and_system_prompt_only_the_end_is_marked() -> None:
    assert build_envelope(model="m", max_tokens=9, system="").text == (
        '{"model":"m","max_tokens":9,"stream":true,"cache_control":{"type":"ephemeral"}}'
    )
