"""Answers with the API's own tools, whole messages in one event, and blocks of other kinds."""

from __future__ import annotations

from conversations.agent.answer import Answer, ToolUse
from tests.agent.streams import (
    closed,
    complete_block,
    delta,
    ended,
    opened,
    start,
    text,
    thought,
    use,
)
from tests.agent.test_answer import fed, kept

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": 1}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def test_a_call_of_the_api_s_own_tools_stays_only_with_its_result() -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": 1}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    head = [start(), *text(0, "I search."), *complete_block(call, 1)]
    before = {"type": "text", "text": "I search."}
    assert kept(fed(head)) == [before]
    assert kept(fed([*head, *ended("end_turn")])) == [before]
    assert kept(fed([*head, opened(2, result)])) == [before]
    assert kept(fed([*head, *complete_block(result, 2)])) == [before, call, result]
    assert kept(fed([*head, *ended("pause_turn")])) == [before, call]
    assert kept(fed([start(), *text(0, "I search."), *complete_block(result, 1)])) == [before]


def test_the_result_of_a_call_that_waits_is_kept_once() -> None:
    events = [
        start(),
        *complete_block(FOUND),
        *complete_block(FOUND, 1),
        *text(2, "So."),
        *ended("end_turn"),
    ]
    before = {"type": "text", "text": "So."}
    assert kept(fed(events, waiting={"srv_1"})) == [FOUND, before]
    assert kept(fed(events)) == [before]
    assert fed(events[:3], waiting={"srv_1"}).has_results
    assert not fed(events[:3]).has_results


def test_a_call_waits_beside_calls_of_our_tools_and_in_no_other_answer() -> None:
    events = [start(), *complete_block(SEARCH), *use(1, "t1", "n")]
    asked = {"type": "tool_use", "id": "t1", "name": "n", "input": {}}
    assert kept(fed([*events, *ended("tool_use")])) == [SEARCH, asked]
    assert kept(fed([*events, *ended("max_tokens")])) == []
    assert kept(fed([start(), *complete_block(SEARCH), *ended("tool_use")])) == []


def test_several_calls_are_paired_by_id_whatever_their_order() -> None:
    other = {**SEARCH, "id": "srv_2"}, {**FOUND, "tool_use_id": "srv_2"}
    blocks = [FOUND, other[0], {**SEARCH, "id": "srv_3"}, other[1]]
    events = [
        start(),
        *(event for at, block in enumerate(blocks) for event in complete_block(block, at)),
    ]
    kinds = [(b["type"], b.get("id")) for b in kept(fed(events, waiting={"srv_1"}))]
    assert kinds == [
        ("web_search_tool_result", None),
        ("server_tool_use", "srv_2"),
        ("web_search_tool_result", None),
    ]
    early = [start(), *complete_block(FOUND), *complete_block(SEARCH, 1), *ended("pause_turn")]
    assert kept(fed(early)) == [SEARCH]


def test_whitespace_between_cited_texts_and_before_thinking_is_kept() -> None:
    events = [start(), *text(0, "\n\n"), *thought(1), *text(2, "A."), *text(3, " "), *text(4, "B.")]
    found = kept(fed(events))
    assert [block.get("text") for block in found] == ["\n\n", None, "A.", " ", "B."]


def test_whitespace_alone_is_no_answer() -> None:
    assert kept(fed([start(), *text(0, "\n\n"), *thought(1), *ended("end_turn")])) == []


def test_a_message_that_stands_whole_in_its_start_is_read() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "n", "input": {"a": 1}}
    begun = start({"input_tokens": 9, "output_tokens": 3})
    begun["message"] |= {
        "content": [{"type": "text", "text": "So."}, call],
        "stop_reason": "tool_use",
    }
    answer = Answer()
    assert answer.feed(begun).text == "So."
    assert not answer.is_complete
    answer.feed({"type": "message_stop"})
    assert kept(answer) == [{"type": "text", "text": "So."}, call]
    assert answer.tool_uses == (ToolUse("t1", "n", '{"a":1}'),)
    assert answer.usage is not None
    assert (answer.usage.output, answer.usage.is_final) == (3, True)


def test_blocks_may_follow_those_in_the_start_of_a_message() -> None:
    begun = start()
    begun["message"]["content"] = [{"type": "text", "text": "So."}]
    answer = fed([begun, *text(1, "Then."), *ended("end_turn")])
    assert [block["text"] for block in kept(answer)] == ["So.", "Then."]


def test_blocks_of_unknown_kinds_and_compactions_are_read_and_not_sent_back() -> None:
    fallback = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
    summed = [
        opened(1, {"type": "compaction", "content": None}),
        delta(1, type="compaction_delta", content="All of it.", encrypted_content="e"),
        closed(1),
    ]
    answer = fed([start(), *complete_block(fallback), *summed, *text(2, "So."), *ended("end_turn")])
    assert kept(answer) == [{"type": "text", "text": "So."}]
    assert answer.is_complete


def test_a_citation_goes_back_without_the_field_that_the_api_does_not_take() -> None:
    cited = {"type": "page_location", "cited_text": "x", "document_index": 0}
    events = [
        start(),
        opened(0, {"type": "text", "text": "", "citations": []}),
        delta(0, type="citations_delta", citation={**cited, "file_id": None}),
        delta(0, type="text_delta", text="Said."),
        closed(0),
    ]
    assert kept(fed(events)) == [{"type": "text", "text": "Said.", "citations": [cited]}]
