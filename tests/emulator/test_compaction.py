"""Section 8: compaction on the server, on demand and automatic, and context editing."""

from __future__ import annotations

from typing import Any

import pytest

from agentweb.emulator.prices import cost_micros
from agentweb.emulator.usage import Usage
from tests.emulator.samples import TEXT, TOOL, assistant, user

ON_DEMAND = "compact-2026-09-04"
AUTOMATIC = "compact-2026-01-12"
EDITING = "context-management-2025-06-27"
ORDER = {"type": "summarize"}
THINKING = {"type": "adaptive", "display": "summarized"}
LONG = "We decided on AB-1234 because it is cheaper. " * 6_000


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def spent(iteration: Any) -> Usage:
    return Usage(
        fresh=iteration["input_tokens"],
        read=iteration["cache_read_input_tokens"],
        write_5m=iteration["cache_creation_input_tokens"],
        output=iteration["output_tokens"],
    )


@pytest.fixture
def history(ask: Any, body: Any) -> Any:
    """Two exchanges with thinking; the second is the tail to keep."""
    grown = body("Remember: the code is AB-1234, decided today.", thinking=THINKING)
    for _ in range(2):
        answer = ask(grown, anthropic_beta=ON_DEMAND).json
        grown["messages"] += [assistant(*answer["content"]), user(TEXT)]
    return grown


def compacted(ask: Any, history: Any, count: int) -> Any:
    order = history | {"messages": history["messages"][:count], "compaction": ORDER}
    answered = ask(order, anthropic_beta=ON_DEMAND)
    assert answered.status == 200, answered.body
    return answered


def test_on_demand_gives_one_signed_readable_block(ask: Any, history: Any) -> None:
    message = compacted(ask, history, 2).json
    (block,) = message["content"]
    assert (message["stop_reason"], block["type"]) == ("compaction", "compaction")
    assert "AB-1234" in block["content"]
    assert block["signature"]


def test_its_tokens_are_an_iteration_and_not_the_top_level(ask: Any, history: Any) -> None:
    answered = compacted(ask, history, 2)
    usage = answered.json["usage"]
    (iteration,) = usage["iterations"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (0, 0)
    assert iteration["type"] == "compaction"
    bill = ask.emulator.bills[answered.headers["request-id"]]
    assert bill.cost_micros == cost_micros("claude-sonnet-5-5", [spent(iteration)]) > 0


def test_the_kept_tail_stays_valid_with_its_thinking(ask: Any, history: Any) -> None:
    block = compacted(ask, history, 2).json["content"][0]
    tail = history["messages"][2:]
    kept = history | {"messages": [assistant(block), *tail]}
    answered = ask(kept, anthropic_beta=ON_DEMAND)
    assert answered.status == 200, answered.body
    assert "input_transformations" not in answered.json


def test_a_tail_that_does_not_follow_directly_is_broken(ask: Any, history: Any) -> None:
    block = compacted(ask, history, 1).json["content"][0]
    gone = history | {"messages": [assistant(block), *history["messages"][2:]]}
    answered = ask(gone, anthropic_beta=ON_DEMAND)
    assert "bound to a different conversation" in answered.message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"content": "Another summary"}, "compaction_content_mismatch"),
        ({"signature": "Zm9yZ2Vk"}, "compaction_signature_invalid"),
    ],
)
def test_a_changed_block_is_refused_by_code(ask: Any, history: Any, change: Any, code: str) -> None:
    block = compacted(ask, history, 2).json["content"][0] | change
    answered = ask(history | {"messages": [assistant(block), user(TEXT)]}, anthropic_beta=ON_DEMAND)
    assert answered.json["error"]["details"] == {"error_code": code}


def test_a_block_must_come_first_and_alone(ask: Any, history: Any) -> None:
    block = compacted(ask, history, 2).json["content"][0]
    late = history | {"messages": [user(TEXT), assistant(block), user(TEXT)]}
    twice = history | {"messages": [assistant(block), user(TEXT), assistant(block), user(TEXT)]}
    for wrong in (late, twice):
        details = ask(wrong, anthropic_beta=ON_DEMAND).json["error"]["details"]
        assert details["error_code"] == "compaction_block_misplaced"


def test_there_must_be_something_to_summarise(ask: Any, history: Any) -> None:
    block = compacted(ask, history, 2).json["content"][0]
    order = history | {"messages": [assistant(block)], "compaction": ORDER}
    details = ask(order, anthropic_beta=ON_DEMAND).json["error"]["details"]
    assert details["error_code"] == "compaction_nothing_to_summarize"


@pytest.mark.parametrize(
    "more",
    [
        {"context_management": {"edits": []}},
        {"stop_sequences": ["x"]},
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        {"compaction": ORDER | {"instructions": "x" * 16_385}},
    ],
)
def test_it_does_not_go_with_everything(ask: Any, body: Any, more: Any) -> None:
    betas = f"{ON_DEMAND},{EDITING}"
    assert ask(body() | {"compaction": ORDER} | more, anthropic_beta=betas).status == 400


@pytest.mark.parametrize(
    ("kind", "stop"),
    [
        ("empty", "end_turn"),
        ("cut", "max_tokens"),
        ("toolcall", "tool_use"),
        ("refusal", "refusal"),
    ],
)
def test_a_failed_compaction_is_empty_and_billed(ask: Any, body: Any, kind: str, stop: str) -> None:
    answered = ask(body(f"emulator:summary={kind}", compaction=ORDER), anthropic_beta=ON_DEMAND)
    assert (answered.json["content"], answered.json["stop_reason"]) == ([], stop)
    assert ask.emulator.bills[answered.headers["request-id"]].cost_micros > 0


def test_compaction_may_be_unavailable(ask: Any, body: Any) -> None:
    answered = ask(body("emulator:summary=error", compaction=ORDER), anthropic_beta=ON_DEMAND)
    assert answered.status == 529
    assert answered.json["error"]["details"] == {"error_code": "compaction_unavailable"}


def automatic(**more: Any) -> Any:
    trigger = {"type": "input_tokens", "value": 50_000}
    return {"edits": [{"type": "compact_20260112", "trigger": trigger} | more]}


def test_automatic_compaction_answers_behind_its_block(ask: Any, body: Any) -> None:
    asked = body(messages=[user(text(LONG)), assistant(TEXT), user(text("Hello"))])
    asked["context_management"] = automatic()
    message = ask(asked, anthropic_beta=AUTOMATIC).json
    assert [block["type"] for block in message["content"]] == ["compaction", "text"]
    kinds = [iteration["type"] for iteration in message["usage"]["iterations"]]
    assert kinds == ["compaction", "message"]
    assert message["usage"]["iterations"][0]["input_tokens"] > 50_000
    assert message["usage"]["input_tokens"] < 2_000
    asked["messages"] += [assistant(*message["content"]), user(TEXT)]
    again = ask(asked, anthropic_beta=AUTOMATIC).json
    assert again["usage"]["input_tokens"] < 3_000


def test_it_streams_in_one_delta(ask: Any, body: Any) -> None:
    asked = body(LONG, stream=True, context_management=automatic(pause_after_compaction=True))
    events = ask(asked, anthropic_beta=AUTOMATIC).events
    (delta,) = [data["delta"] for name, data in events if name == "content_block_delta"]
    assert delta["type"] == "compaction_delta"
    assert "AB-1234" in delta["content"]
    final = next(data for name, data in events if name == "message_delta")
    assert final["delta"]["stop_reason"] == "compaction"
    assert [row["type"] for row in final["usage"]["iterations"]] == ["compaction"]


def test_below_its_trigger_nothing_happens(ask: Any, body: Any) -> None:
    message = ask(body(context_management=automatic()), anthropic_beta=AUTOMATIC).json
    assert [block["type"] for block in message["content"]] == ["text"]
    assert [row["type"] for row in message["usage"]["iterations"]] == ["message"]


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
