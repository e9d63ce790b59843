from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.agent.answer import Answer, StreamError, ToolUse
from conversations.claude.sse import EventReader
from conversations.context.view import blocks as rules
from tests.agent.streams import (
    Events,
    calls,
    closed,
    complete_block,
    delta,
    ended,
    opened,
    says,
    start,
    text,
    thought,
    use,
)


def fed(events: Events, **facts: Any) -> Answer:
    answer = Answer(**facts)
    for event in events:
        answer.feed(event)
    return answer


def kept(answer: Answer) -> list[Any]:
    return [json.loads(block) for block in answer.blocks]


ODD: list[Any] = [
    None,
    True,
    -1,
    10**30,
    "",
    " ",
    "a",
    "bad id",
    "\ud83d\0",
    [],
    [[]],
    {},
    {"a": [1]},
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "web_search_tool_result",
    "tool_result",
    "image",
    "text_delta",
    "thinking_delta",
    "input_json_delta",
    "signature_delta",
    "citations_delta",
    "message_start",
    "content_block_start",
    "message_stop",
]


@st.composite
def garbage(draw: st.DrawFn) -> Events:
    """A stream in which events are lost, doubled or moved, and fields say something odd."""
    events: Events = json.loads(json.dumps(draw(streams())))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(events) - 1))
        match draw(st.sampled_from(["lose", "double", "move", "field", "field", "field"])):
            case "lose" if len(events) > 1:
                events.pop(at)
            case "double":
                events.insert(at, json.loads(json.dumps(events[at])))
            case "move":
                events.insert(draw(st.integers(0, len(events) - 1)), events.pop(at))
            case _:
                place = events[at]
                inner = [value for value in place.values() if isinstance(value, dict)]
                place = draw(st.sampled_from([place, *inner]))
                keys = [*place, "type", "id", "tool_use_id", "data", "citations", "usage"]
                # A copy: what is changed in it later must not change the list.
                place[draw(st.sampled_from(keys))] = deepcopy(draw(st.sampled_from(ODD)))
    return events


@st.composite
def streams(draw: st.DrawFn) -> Events:
    """A valid stream: blocks of every kind, in order, to its end."""
    events = [start()]
    count = draw(st.integers(0, 4))
    for index in range(count):
        parts = draw(st.lists(st.text(max_size=5), max_size=3))
        make = draw(st.sampled_from(["text", "thinking", "use", "unknown"]))
        if make == "text":
            events += text(index, *parts)
        elif make == "thinking":
            events += thought(index, "".join(parts))
        elif make == "use":
            events += use(index, f"toolu_{index}", input={"x": parts})
        else:
            events += complete_block({"type": "hologram", "data": parts}, index)
    return [*events, *ended(draw(st.sampled_from(["tool_use", "end_turn", "max_tokens"])))]


def check_blocks(answer: Answer) -> None:
    """What is kept is JSON that the API takes back, and thinking never stands last."""
    blocks = kept(answer)
    assert rules.find_flaw("assistant", blocks) is None
    assert not blocks or blocks[-1]["type"] not in ("thinking", "redacted_thinking")
    assert {use.id for use in answer.tool_uses} == {
        block["id"] for block in blocks if block["type"] == "tool_use"
    }


@given(streams(), st.data())
def test_no_prefix_of_a_stream_has_tool_calls_and_its_blocks_can_be_sent(
    events: Events, data: st.DataObject
) -> None:
    answer = fed(events[: data.draw(st.integers(0, len(events) - 1))])
    assert answer.tool_uses == ()
    assert not answer.is_complete
    check_blocks(answer)


@given(streams())
def test_a_whole_stream_is_complete_and_its_blocks_can_be_sent(events: Events) -> None:
    answer = fed(events)
    assert answer.is_complete
    check_blocks(answer)


@settings(max_examples=300)
@given(garbage())
def test_whatever_comes_only_a_stream_error_is_raised_and_what_is_kept_can_be_sent(
    events: Events,
) -> None:
    answer, refusal = Answer(frozenset({"toolu_2"})), ""
    try:
        for event in events:
            grown = answer.feed(event)
            assert "\0" not in grown.text + grown.thinking
    except StreamError as error:
        refusal = str(error)
    assert len(refusal) < 600
    check_blocks(answer)
    assert isinstance(answer.text + answer.thinking, str)
    if answer.usage is not None:
        assert min(answer.usage.context, answer.usage.output) >= 0


def test_unknown_events_and_deltas_and_pings_are_ignored() -> None:
    odd: Events = [{"type": "ping"}, {"type": "content_block_aura"}, {"type": "aura"}, {}]
    mixed: Events = [*odd, start()]
    for event in [*text(0, "Hi"), *ended("end_turn")]:
        mixed += [*odd, event]
    mixed.insert(-16, delta(0, type="scent_delta", scent="rose"))
    assert kept(fed(mixed)) == [{"type": "text", "text": "Hi"}]


def test_what_comes_after_the_end_counts_for_nothing() -> None:
    answer = fed([*says("Hi"), start(), *text(0, "more"), *ended("tool_use")])
    assert (answer.text, answer.stop_reason) == ("Hi", "end_turn")


def test_a_later_delta_without_a_reason_leaves_the_reason_in_force() -> None:
    events = [start(), *ended("max_tokens")[:1], *ended(None)]
    assert fed(events).stop_reason == "max_tokens"


@pytest.mark.parametrize("kind", ["content_block_start", "message_delta", "message_stop"])
def test_nothing_comes_before_the_message_started(kind: str) -> None:
    with pytest.raises(StreamError, match="before the message started"):
        fed([{"type": kind}])


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "text", "text": ""}, {"type": "thinking_delta", "thinking": "x"}),
        ({"type": "thinking", "thinking": ""}, {"type": "text_delta", "text": "x"}),
        ({"type": "text", "text": ""}, {"type": "input_json_delta", "partial_json": "{}"}),
        ({"type": "tool_use", "id": "t", "name": "n"}, {"type": "text_delta", "text": "x"}),
    ],
)
def test_a_delta_of_another_block_is_no_part_of_this_one(
    block: dict[str, Any], kind: dict[str, Any]
) -> None:
    with pytest.raises(StreamError, match="does not belong"):
        fed([start(), opened(0, block), delta(0, **kind)])


def test_text_and_thinking_of_a_block_s_start_are_shown_and_kept() -> None:
    begun = {"type": "thinking", "thinking": "Well", "signature": "c2ln"}
    events = [
        start(),
        *complete_block(begun),
        *complete_block({"type": "text", "text": "So"}, 1),
        *ended("end_turn"),
    ]
    answer = Answer()
    grown = [answer.feed(event) for event in events]
    assert "".join(g.thinking for g in grown) == answer.thinking == "Well"
    assert "".join(g.text for g in grown) == answer.text == "So"
    assert kept(answer) == [begun, {"type": "text", "text": "So"}]


def test_lone_surrogates_are_replaced_and_a_nul_is_kept_on_the_wire_but_not_shown() -> None:
    answer = fed([start(), opened(0, {"type": "text", "text": ""})])
    grown = answer.feed(delta(0, type="text_delta", text="a\0b\ud83dc"))
    assert grown.text == "a\ufffdb\ufffdc"
    assert kept(answer) == [{"type": "text", "text": "a\0b\ufffdc"}]
    assert answer.blocks[0].isprintable()


def test_citations_are_kept_with_their_text() -> None:
    first, second = {"type": "char_location", "n": 1}, {"type": "char_location", "n": 2}
    events = [
        start(),
        opened(0, {"type": "text", "text": "", "citations": [first]}),
        delta(0, type="text_delta", text="Said."),
        delta(0, type="citations_delta", citation=second),
        closed(0),
    ]
    assert kept(fed(events)) == [{"type": "text", "text": "Said.", "citations": [first, second]}]


def test_a_null_that_the_api_sends_is_not_sent_back() -> None:
    block = {"type": "text", "text": "Hi", "citations": None}
    assert kept(fed([start(), *complete_block(block)])) == [{"type": "text", "text": "Hi"}]
    call: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
    call |= {"toolset_name": None, "caller": {"type": "direct"}, "novel": 1}
    answer = fed([start(), *complete_block(call), *ended("tool_use")])
    assert kept(answer) == [
        {"type": "tool_use", "id": "t", "name": "n", "caller": {"type": "direct"}, "input": {}}
    ]


def test_an_input_given_whole_at_the_start_counts() -> None:
    call = {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}
    answer = fed([start(), *complete_block(call), *ended("tool_use")])
    assert answer.tool_uses == (ToolUse("t", "n", '{"a":1}'),)


def test_thinking_behind_a_block_that_was_left_out_is_left_out_too() -> None:
    events = [
        start(),
        *thought(0),
        *complete_block({"type": "hologram"}, 1),
        *thought(2),
        *text(3, "So."),
    ]
    assert [block["type"] for block in kept(fed(events))] == ["thinking", "text"]


def test_thinking_without_its_signature_is_left_out() -> None:
    bare = {"type": "thinking", "thinking": "hm", "signature": ""}
    events = [start(), *complete_block(bare), *text(1, "So.")]
    assert [block["type"] for block in kept(fed(events))] == ["text"]


def test_redacted_thinking_goes_back_as_it_came() -> None:
    hidden = {"type": "redacted_thinking", "data": "abc"}
    assert kept(fed([start(), *complete_block(hidden), *text(1, "So.")]))[0] == hidden


@pytest.mark.parametrize("place", ["usage", "citation", "result"])
def test_what_is_nested_too_deeply_is_no_answer(place: str) -> None:
    deep: Any = {}
    for _ in range(150):
        deep = {"a": [deep]}
    events = [start(), *text(0, "Hi")[:-1]]
    if place == "usage":
        events += [{"type": "message_delta", "delta": {}, "usage": deep}]
    elif place == "citation":
        events += [delta(0, type="citations_delta", citation=deep)]
    else:
        call = {"type": "server_tool_use", "id": "srv_1", "name": "s", "input": {}}
        result = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": deep}
        events += [closed(0), *complete_block(call, 1), *complete_block(result, 2)]
    with pytest.raises(StreamError, match="deep"):
        fed(events)


def test_calls_of_two_answers_never_share_an_id() -> None:
    [one] = fed(calls("toolu_1"), taken={"toolu_1", "toolu_1_2"}).tool_uses
    assert (one.id, one.given_id) == ("toolu_1_3", "toolu_1")
    answer = fed(calls("toolu_1", "toolu_1", "toolu_2"))
    assert [(use.id, use.given_id) for use in answer.tool_uses] == [
        ("toolu_1", ""), ("toolu_1_2", "toolu_1"), ("toolu_2", "")
    ]  # fmt: skip
    check_blocks(answer)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("a.b:1", "a_b_1"), ("bad id!", "bad_id_"), ("", "call"), (None, "call"), (7, "7"),
     ("t" * 300, "t" * 190), ("ä", "_")],
)  # fmt: skip
def test_an_id_that_could_not_be_sent_back_is_replaced(given: Any, kept: str) -> None:
    answer = fed([start(), *use(0, given, "odd name"), *ended("tool_use")])
    [call] = answer.tool_uses
    assert (call.id, call.name) == (kept, "odd_name")
    assert call.given_id == ("" if str(given or "") == kept else str(given or ""))
    check_blocks(answer)


def test_the_result_of_a_renamed_call_of_the_api_goes_with_it() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    events = [
        start(),
        *complete_block(call),
        *complete_block(found, 1),
        *text(2, "Done."),
        *ended("end_turn"),
    ]
    kept = [json.loads(block) for block in fed(events, taken={"srvtoolu_1"}).blocks]
    assert kept[0]["id"] == kept[1]["tool_use_id"] == "srvtoolu_1_2"


def test_cut_at_any_byte_an_answer_is_not_done_and_has_no_tool_calls() -> None:
    parts = [start(), *thought(0), *text(1, "Ich suche Äpfel."), *use(2, "t", input={"a": "é"})]
    written = [f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in parts + ended("tool_use")]
    raw = "".join(written).encode()
    for end in range(len(raw)):
        answer = fed(list(EventReader().feed(raw[:end])))
        assert not answer.is_complete
        assert answer.tool_uses == ()
        check_blocks(answer)
    assert len(fed(list(EventReader().feed(raw))).tool_uses) == 1


def test_an_answer_has_thought_if_it_has_thinking_or_nothing_yet() -> None:
    assert Answer().has_thought
    assert fed([start(), *thought(0), *text(1, "Hi")]).has_thought
    assert not fed([start(), *text(0, "Hi")]).has_thought
