"""Section 8: context editing on the server, and the token count that previews it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.samples import MARK, TEXT, TOOL, assistant, user

EDITING = "context-management-2025-06-27"
THINKING = {"type": "adaptive", "display": "summarized"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.fixture
def history(ask: Any, body: Any) -> Any:
    """Return two exchanges with thinking."""
    grown = body("Remember: the code is AB-1234, decided today.", thinking=THINKING)
    for _ in range(2):
        answer = ask(grown).json
        grown["messages"] += [assistant(*answer["content"]), user(TEXT)]
    return grown


def rounds(count: int) -> list[Any]:
    messages = [user(TEXT)]
    for number in range(count):
        name = "read_file" if number else "pinned"
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"path": "a"}}
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": "word " * 2_000,
        }
        messages += [assistant(use), user(result)]
    return messages


def clearing(**more: Any) -> Any:
    edit = {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 4}}
    return {"edits": [edit | more]}


@pytest.mark.parametrize(
    ("more", "cleared"),
    [
        ({}, 3),
        ({"keep": {"type": "tool_uses", "value": 1}}, 5),
        ({"exclude_tools": ["pinned"]}, 2),
        ({"clear_at_least": {"type": "input_tokens", "value": 900_000}}, 0),
        ({"trigger": {"type": "input_tokens", "value": 100_000}}, 0),
        ({"trigger": {"type": "input_tokens", "value": 5_000}}, 3),
    ],
)
def test_old_tool_results_are_cleared_and_only_counted(
    ask: Any, body: Any, more: Any, cleared: int
) -> None:
    asked = body(messages=rounds(6), tools=[TOOL], context_management=clearing(**more))
    message = ask(asked, anthropic_beta=EDITING).json
    applied = message["context_management"]["applied_edits"]
    assert [edit["cleared_tool_uses"] for edit in applied] == ([cleared] if cleared else [])
    counted = {k: v for k, v in asked.items() if k != "max_tokens"}
    count = ask(counted, path="/v1/messages/count_tokens", anthropic_beta=EDITING).json
    freed = sum(edit["cleared_input_tokens"] for edit in applied)
    assert count["context_management"]["original_input_tokens"] - freed == count["input_tokens"]


def test_clearing_on_the_server_leaves_signatures_valid(ask: Any, body: Any) -> None:
    asked = body("list files", thinking=THINKING, tools=[TOOL | {"name": "list_files"}])
    asked["context_management"] = clearing(
        trigger={"type": "tool_uses", "value": 1}, keep={"type": "tool_uses", "value": 0}
    )
    for _ in range(4):
        answered = ask(asked, anthropic_beta=EDITING)
        assert answered.status == 200, answered.body
        content = answered.json["content"]
        calls = [block for block in content if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": c["id"], "content": "x " * 99} for c in calls
        ]
        asked["messages"] += [assistant(*content), user(*results, text("list files again"))]


def test_old_thinking_is_cleared_by_turns(ask: Any, history: Any) -> None:
    history["context_management"] = {
        "edits": [
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
        ]
    }
    applied = ask(history, anthropic_beta=EDITING).json["context_management"]["applied_edits"]
    assert [edit["cleared_thinking_turns"] for edit in applied] == [1]


def test_a_count_previews_the_clearing_of_thinking(ask: Any, history: Any) -> None:
    keep = {"type": "thinking_turns", "value": 1}
    history["context_management"] = {"edits": [{"type": "clear_thinking_20251015", "keep": keep}]}
    applied = ask(history, anthropic_beta=EDITING).json["context_management"]["applied_edits"]
    counted = {name: value for name, value in history.items() if name != "max_tokens"}
    count = ask(counted, path="/v1/messages/count_tokens", anthropic_beta=EDITING).json
    original = count["context_management"]["original_input_tokens"]
    assert original - count["input_tokens"] == applied[0]["cleared_input_tokens"] > 0


@pytest.mark.parametrize("keep", ["all", {"type": "all"}])
def test_all_thinking_may_be_kept(ask: Any, history: Any, keep: Any) -> None:
    history["context_management"] = {"edits": [{"type": "clear_thinking_20251015", "keep": keep}]}
    message = ask(history, anthropic_beta=EDITING).json
    assert message["context_management"]["applied_edits"] == []


def test_thinking_is_cleared_before_anything_else(ask: Any, body: Any) -> None:
    kinds = ("clear_tool_uses_20250919", "clear_thinking_20251015")
    asked = body(context_management={"edits": [{"type": kind} for kind in kinds]})
    assert ask(asked, anthropic_beta=EDITING).message == (
        "context_management.edits: `clear_thinking_20251015` must be listed first"
    )
    asked["context_management"]["edits"].reverse()
    assert ask(asked, anthropic_beta=EDITING).status == 200


def test_an_edit_stands_once(ask: Any, body: Any) -> None:
    edit = {"type": "clear_tool_uses_20250919"}
    asked = body(context_management={"edits": [edit, edit]})
    assert "may be given only once" in ask(asked, anthropic_beta=EDITING).message


def test_inputs_are_cleared_where_asked(ask: Any, body: Any) -> None:
    plain = body(messages=rounds(6), tools=[TOOL], context_management=clearing())
    more = plain | {"context_management": clearing(clear_tool_inputs=True)}
    freed = [
        ask(asked, anthropic_beta=EDITING).json["context_management"]["applied_edits"][0]
        for asked in (plain, more)
    ]
    assert freed[0]["cleared_input_tokens"] < freed[1]["cleared_input_tokens"]
    assert freed[0]["cleared_tool_uses"] == freed[1]["cleared_tool_uses"]


def test_in_a_stream_the_edits_come_with_the_stop_reason(ask: Any, body: Any) -> None:
    asked = body(messages=rounds(6), tools=[TOOL], context_management=clearing(), stream=True)
    events = ask(asked, anthropic_beta=EDITING).events
    final = next(data for name, data in events if name == "message_delta")
    assert final["context_management"]["applied_edits"][0]["cleared_tool_uses"] == 3


def test_the_cache_holds_up_to_the_first_cleared_result(ask: Any, body: Any) -> None:
    messages = rounds(6)
    messages[2]["content"][0] |= MARK
    messages[-1]["content"][0] |= MARK
    asked = body(messages=messages, tools=[TOOL])
    ask(asked, anthropic_beta=EDITING)
    usage = ask(asked | {"context_management": clearing()}, anthropic_beta=EDITING).json["usage"]
    assert usage["cache_read_input_tokens"] == 0
    kept = clearing(exclude_tools=["pinned"])
    usage = ask(asked | {"context_management": kept}, anthropic_beta=EDITING).json["usage"]
    assert usage["cache_read_input_tokens"] > 1_024
