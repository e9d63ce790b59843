"""Section 8: compaction on the server, on demand and automatic, and context editing."""

from __future__ import annotations

from typing import Any

import pytest

from agentweb.emulator.prices import cost_micros
from agentweb.emulator.usage import Usage
from tests.emulator.samples import TEXT, assistant, user

ON_DEMAND = "compact-2026-09-04"
AUTOMATIC = "compact-2026-01-12"
EDITING = "context-management-2025-06-27"
CONTROLS = "thinking-binding-controls-2026-08-01"
DROP = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
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
    """Return two exchanges with thinking; the second is the tail to keep."""
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
        ({"tool_changes": []}, "compaction_tool_changes_mismatch"),
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
    told = {"role": "system", "content": [block]}
    system = history | {"messages": [user(TEXT), told, assistant(TEXT), user(TEXT)]}
    for wrong, code in ((late, "misplaced"), (twice, "ambiguous"), (system, "misplaced")):
        details = ask(wrong, anthropic_beta=ON_DEMAND).json["error"]["details"]
        assert details["error_code"] == f"compaction_block_{code}"


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
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "string"}}}},
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
        ("blank", "end_turn"),
        ("cut", "max_tokens"),
        ("window", "model_context_window_exceeded"),
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


def test_a_failed_one_is_a_block_of_null_that_does_nothing_when_sent_back(
    ask: Any, body: Any
) -> None:
    words = f"{LONG} emulator:summary=toolcall"
    asked = body(words, context_management=automatic())
    message = ask(asked, anthropic_beta=AUTOMATIC).json
    failed, answer = message["content"]
    assert (failed["type"], failed["content"], answer["type"]) == ("compaction", None, "text")
    asked["messages"] += [assistant(*message["content"]), user(TEXT)]
    del asked["context_management"]
    assert ask(asked, anthropic_beta=AUTOMATIC).json["usage"]["input_tokens"] > 50_000


def test_a_block_of_another_hand_breaks_the_thinking_behind_it(ask: Any, body: Any) -> None:
    asked = body(messages=[user(text(LONG)), assistant(TEXT), user(text("Hello"))])
    asked |= {"context_management": automatic(), "thinking": THINKING}
    content = ask(asked, anthropic_beta=AUTOMATIC).json["content"]
    assert [block["type"] for block in content] == ["compaction", "thinking", "text"]
    asked["messages"] += [assistant(*content), user(TEXT)]
    assert ask(asked, anthropic_beta=AUTOMATIC).status == 200
    content[0] = content[0] | {"encrypted_content": "b3RoZXI="}
    asked["messages"][-2] = assistant(*content)
    refused = ask(asked, anthropic_beta=AUTOMATIC)
    assert "bound to a different conversation" in refused.message


def test_its_trigger_has_a_least_value(ask: Any, body: Any) -> None:
    trigger = {"type": "input_tokens", "value": 49_999}
    answered = ask(body(context_management=automatic(trigger=trigger)), anthropic_beta=AUTOMATIC)
    assert answered.message.endswith("Input should be greater than or equal to 50000")


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-sonnet-4-5"])
def test_older_models_have_none_of_it(ask: Any, body: Any, model: str) -> None:
    asked = body(context_management=automatic(), model=model)
    assert ask(asked, anthropic_beta=AUTOMATIC).message.endswith("is not supported for this model")


@pytest.mark.parametrize(
    "open_call",
    [
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    ],
)
def test_on_demand_nothing_may_be_open_at_the_end(ask: Any, body: Any, open_call: Any) -> None:
    messages = [user(TEXT), assistant(TEXT, open_call)]
    answered = ask(body(messages=messages, compaction=ORDER), anthropic_beta=ON_DEMAND)
    assert answered.status == 400
    assert answered.json["error"]["details"] == {"error_code": "compaction_incomplete_turn"}


def test_on_demand_the_last_word_may_be_the_assistants(ask: Any, body: Any) -> None:
    messages = [user(TEXT), assistant(TEXT)]
    answered = ask(body(messages=messages, compaction=ORDER), anthropic_beta=ON_DEMAND)
    assert answered.json["stop_reason"] == "compaction"


def test_on_demand_the_block_arrives_whole_when_it_starts(ask: Any, body: Any) -> None:
    asked = body("The code is AB-1234.", compaction=ORDER, stream=True)
    events = ask(asked, anthropic_beta=ON_DEMAND).events
    names = [name for name, data in events if "index" in data]
    assert names == ["content_block_start", "content_block_stop"]
    (start,) = [data for name, data in events if name == "content_block_start"]
    assert "AB-1234" in start["content_block"]["content"]
    assert start["content_block"]["signature"]


def test_on_demand_what_is_too_long_is_refused_like_any_prompt(ask: Any, body: Any) -> None:
    asked = body("1" * 2_400_000, compaction=ORDER)
    answered = ask(asked, anthropic_beta=ON_DEMAND)
    assert answered.message.startswith("prompt is too long: ")


def test_summarised_messages_left_behind_the_block_are_read_and_paid(
    ask: Any, history: Any
) -> None:
    """Without an error: the request is accepted, and the range counts twice."""
    block = compacted(ask, history, 2).json["content"][0]
    plain = {name: value for name, value in history.items() if name != "thinking"}
    kept = plain | {"messages": [assistant(block), *history["messages"][2:]]}
    left = plain | {"messages": [assistant(block), user(text(LONG)), *history["messages"][3:]]}
    counts = [
        ask(asked, anthropic_beta=f"{ON_DEMAND},{CONTROLS}").json["usage"]["input_tokens"]
        for asked in (kept, left | {"thinking": THINKING | DROP})
    ]
    assert counts[1] > counts[0] + 50_000


def test_a_count_ignores_the_order_and_applies_the_block(ask: Any, history: Any) -> None:
    path = "/v1/messages/count_tokens"
    whole = {name: value for name, value in history.items() if name != "max_tokens"}
    block = compacted(ask, history, 2).json["content"][0]
    plain = ask(whole, path=path).json
    ordered = ask(
        whole | {"compaction": ORDER | {"type": "odd"}}, path=path, anthropic_beta=ON_DEMAND
    )
    assert ordered.json == plain
    long = whole | {"messages": [user(text(LONG)), assistant(block), user(TEXT)]}
    auto = {"type": "compaction", "content": "Summary"}
    short = whole | {"messages": [user(text(LONG)), assistant(auto), user(TEXT)]}
    assert ask(long, path=path, anthropic_beta=ON_DEMAND).status == 400
    assert ask(short, path=path, anthropic_beta=AUTOMATIC).json["input_tokens"] < 100
