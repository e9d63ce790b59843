"""Section 13: tools on the API's side make rounds, which span answers and are billed singly."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from agentweb.emulator.prices import cost_micros
from tests.emulator.samples import MARK, TEXT, TOOL, assistant, user
from tests.emulator.streams import assemble
from tests.emulator.test_server_tools import SEARCH, kinds

MODEL = "claude-sonnet-5-5"
TIME = TOOL | {"name": "current_time"}
TOOLS = {"tools": [SEARCH, TIME]}
USE, RESULT = "server_tool_use", "web_search_tool_result"


def rounds(order: str) -> str:
    return f"What is tea? emulator:rounds={order}"


def results(message: Any) -> dict[str, Any]:
    """Return the client's results for its own calls."""
    called = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    return user(*({"type": "tool_result", "tool_use_id": name, "content": "9"} for name in called))


def spent(ask: Any, answered: Any) -> Any:
    return ask.emulator.bills[answered.headers["request-id"]].iterations


def counted(ask: Any, asked: Any) -> int:
    kept = {name: asked[name] for name in ("model", "messages", "tools")}
    return int(ask(kept, path="/v1/messages/count_tokens").json["input_tokens"])


def test_each_search_is_a_round_that_reads_all_before_it(ask: Any, body: Any) -> None:
    asked = body(rounds("search,say,search,search"), **TOOLS, stream=True)
    answered = ask(asked)
    start, final = answered.events[0][1]["message"]["usage"], answered.events[-2][1]["usage"]
    made = spent(ask, answered)
    prompts = [usage.prompt for usage in made]
    assert len(made) == 4
    assert prompts == sorted(set(prompts))
    assert start["input_tokens"] == prompts[0] == counted(ask, asked)
    assert final["input_tokens"] == sum(prompts) > 4 * prompts[0]
    assert final["output_tokens"] == sum(usage.output for usage in made)
    assert final["server_tool_use"]["web_search_requests"] == 3
    bill = ask.emulator.bills[answered.headers["request-id"]]
    assert bill.cost_micros == cost_micros(MODEL, made, searches=3)


def test_the_summed_usage_is_not_the_size_of_the_context(ask: Any, body: Any) -> None:
    asked = body(rounds("search,search,search"), **TOOLS)
    answered = ask(asked)
    last = spent(ask, answered)[-1]
    asked["messages"] += [assistant(*answered.json["content"]), user(TEXT)]
    size = counted(ask, asked)
    assert size == ask(asked).json["usage"]["input_tokens"]
    assert last.prompt < size < last.prompt + last.output + 30
    assert size < answered.json["usage"]["input_tokens"]


def test_cited_texts_are_kept_apart_by_whitespace(ask: Any, body: Any) -> None:
    asked = body(rounds("search,search,search"), **TOOLS)
    content = ask(asked).json["content"]
    said = [block["text"] for block in content if block["type"] == "text"]
    assert [text for text in said if not text.strip()] == [" ", "\n\n"]
    assert [len(block.get("citations", ())) for block in content if block["type"] == "text"] == [
        *(0, 1, 0, 1, 0, 1)
    ]
    asked["messages"] += [assistant(*content), user(TEXT)]
    assert ask(asked).status == 200


def test_a_citation_of_the_web_comes_before_its_words(ask: Any, body: Any) -> None:
    events = ask(body(rounds("search"), **TOOLS, stream=True)).events
    deltas = [data["delta"]["type"] for name, data in events if name == "content_block_delta"]
    at = deltas.index("citations_delta")
    assert deltas[at + 1] == "text_delta"


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_paused_turn_goes_on_with_the_result_of_its_open_call(
    ask: Any, body: Any, is_streamed: bool
) -> None:
    asked = body(rounds("search,search,pause,search"), **TOOLS)
    first = ask(asked).json
    assert (kinds(first), first["stop_reason"]) == ([USE, RESULT, USE], "pause_turn")
    asked["messages"].append(assistant(*first["content"]))
    size = counted(ask, asked)
    answered = ask(asked | {"stream": is_streamed})
    content = assemble(answered.events) if is_streamed else answered.json["content"]
    assert kinds({"content": content})[:3] == [RESULT, USE, RESULT]
    assert content[0]["tool_use_id"] == first["content"][-1]["id"]
    assert spent(ask, answered)[0].prompt > size
    asked["messages"] += [assistant(*content), user(TEXT)]
    assert ask(asked).status == 200


def test_a_search_waits_beside_a_call_of_the_client(ask: Any, body: Any) -> None:
    asked = body(rounds("search,search+tool,search"), **TOOLS)
    first = ask(asked).json
    assert kinds(first) == [USE, RESULT, USE, "tool_use"]
    assert first["stop_reason"] == "tool_use"
    asked["messages"] += [assistant(*first["content"]), results(first)]
    second = ask(asked).json
    assert kinds(second)[:3] == [RESULT, USE, RESULT]
    assert second["content"][0]["tool_use_id"] == first["content"][2]["id"]
    assert second["usage"]["server_tool_use"]["web_search_requests"] == 2
    asked["messages"] += [assistant(*second["content"]), user(TEXT)]
    assert ask(asked).status == 200


def test_several_calls_of_one_round_wait_and_come_back_together(ask: Any, body: Any) -> None:
    asked = body(rounds("search+search,search+search+tool,search!+search,pause"), **TOOLS)
    first = ask(asked).json
    assert kinds(first) == [USE, USE, RESULT, RESULT, USE, USE, "tool_use"]
    asked["messages"] += [assistant(*first["content"]), results(first)]
    second = ask(asked).json
    assert kinds(second) == [RESULT, RESULT, USE, USE]
    assert second["stop_reason"] == "pause_turn"
    asked["messages"].append(assistant(*second["content"]))
    third = ask(asked).json
    assert kinds(third)[:3] == [RESULT, RESULT, "text"]
    failed = third["content"][0]["content"]
    assert failed == {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    assert third["usage"]["server_tool_use"]["web_search_requests"] == 1


def test_a_turn_may_pause_again_and_again(ask: Any, body: Any) -> None:
    asked = body(rounds("search,pause,search+tool,pause,search,pause,say"), **TOOLS)
    stops = []
    for _ in range(6):
        answer = ask(asked).json
        stops.append(answer["stop_reason"])
        asked["messages"].append(assistant(*answer["content"]))
        if answer["stop_reason"] == "tool_use":
            asked["messages"].append(results(answer))
        if answer["stop_reason"] == "end_turn":
            break
    assert stops == ["pause_turn", "tool_use", "pause_turn", "pause_turn", "end_turn"]
    found = [b for m in asked["messages"][1:] for b in m["content"] if b["type"] == RESULT]
    assert len(found) == 3


def test_what_is_marked_is_read_again_in_every_round(ask: Any, body: Any) -> None:
    system = [{"type": "text", "text": "word " * 3_000} | MARK]
    answered = ask(body(rounds("search,search"), **TOOLS, system=system))
    first, *later = spent(ask, answered)
    assert first.write_5m > 2_000
    assert [(usage.read, usage.write_5m) for usage in later] == [(first.write_5m, 0)] * 2
    usage = answered.json["usage"]
    assert usage["cache_read_input_tokens"] == 2 * first.write_5m
    assert usage["cache_creation_input_tokens"] == first.write_5m


def test_an_automatic_mark_moves_with_the_rounds(ask: Any, body: Any) -> None:
    asked = body(
        rounds("search,search"),
        **TOOLS,
        system="word " * 3_000,
        cache_control=MARK["cache_control"],
    )
    answered = ask(asked)
    made = spent(ask, answered)
    assert [usage.fresh for usage in made] == [0, 0, 0]
    assert all(later.read == before.prompt for before, later in pairwise(made))
    asked["messages"] += [assistant(*answered.json["content"]), user(TEXT)]
    assert ask(asked).json["usage"]["cache_read_input_tokens"] == made[-1].prompt


@pytest.mark.parametrize(
    ("place", "begun"),
    [
        ("server_tool_use", 1),
        ("web_search_tool_result", 1),
        ("server_tool_use:2", 2),
        ("web_search_tool_result:2", 2),
        ("text", 3),
        ("text:2", 3),
    ],
)
@pytest.mark.parametrize("how", ["cut_in", "error_in", "end_in", "reset_in"])
def test_a_cut_answer_costs_the_rounds_that_had_begun(
    ask: Any, body: Any, place: str, begun: int, how: str
) -> None:
    asked = body(rounds("search,search"), **TOOLS)
    whole = spent(ask, ask(asked))
    cut = ask(asked | {"stream": True}, x_emulator_fault=f"{how}:{place}")
    assert not ask.emulator.bills[cut.headers["request-id"]].complete
    made = spent(ask, cut)
    assert [usage.prompt for usage in made] == [usage.prompt for usage in whole[:begun]]
    assert [usage.output for usage in made[:-1]] == [usage.output for usage in whole[: begun - 1]]
    assert 0 < made[-1].output <= whole[begun - 1].output


def test_a_pause_behind_words_goes_on_too(ask: Any, body: Any) -> None:
    asked = body(rounds("search+tool,say,pause"), **TOOLS)
    first = ask(asked).json
    asked["messages"] += [assistant(*first["content"]), results(first)]
    second = ask(asked).json
    assert (kinds(second), second["stop_reason"]) == ([RESULT, "text"], "pause_turn")
    asked["messages"].append(assistant(*second["content"]))
    assert ask(asked).json["stop_reason"] == "end_turn"


def test_an_open_call_that_is_never_gone_on_with_is_refused(ask: Any, body: Any) -> None:
    asked = body(rounds("search,pause"), **TOOLS)
    first = ask(asked).json
    name = first["content"][0]["id"]
    asked["messages"] += [assistant(*first["content"]), user(TEXT)]
    assert ask(asked).message == (
        f"messages.1: `web_search` tool use with id `{name}` was found without a corresponding "
        "`web_search_tool_result` block"
    )


def test_a_result_that_did_not_come_back_is_refused_later(ask: Any, body: Any) -> None:
    asked = body(rounds("search+tool"), **TOOLS)
    first = ask(asked).json
    asked["messages"] += [assistant(*first["content"]), results(first)]
    second = ask(asked).json
    asked["messages"] += [assistant(*second["content"][1:]), user(TEXT)]
    assert "without a corresponding `web_search_tool_result` block" in ask(asked).message


def test_the_text_between_rounds_is_thinking_on_models_that_narrate_so(ask: Any, body: Any) -> None:
    asked = body(rounds("search,say,search"), **TOOLS, thinking={"type": "adaptive"})
    assert kinds(ask(asked).json)[:6] == ["thinking", USE, RESULT, "thinking", USE, RESULT]
    plain = body(rounds("search,say,search"), **TOOLS, model="claude-opus-4-8")
    assert kinds(ask(plain).json)[:5] == [USE, RESULT, "text", USE, RESULT]


def test_thinking_signed_between_rounds_is_taken_back(ask: Any, body: Any) -> None:
    order = "think,search,think,search+tool,think,search,pause,say"
    asked = body(rounds(order), **TOOLS, thinking={"type": "adaptive"})
    first = ask(asked).json
    asked["messages"] += [assistant(*first["content"]), results(first)]
    second = ask(asked).json
    asked["messages"].append(assistant(*second["content"]))
    third = ask(asked).json
    assert third["stop_reason"] == "end_turn", third
    asked["messages"] += [assistant(*third["content"]), user(TEXT)]
    assert ask(asked).status == 200
