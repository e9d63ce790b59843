"""Sections 3 and 13: rare forms of a stream, and thinking that leaves no tokens for text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import anthropic
import pytest

from agentweb.emulator.server import EmulatorServer
from tests.emulator.samples import TEXT, TOOL, assistant, user
from tests.emulator.streams import assemble

TOOLS = [TOOL | {"name": "list_files"}]


@pytest.mark.parametrize("prompt", ["list files", "Show me a table"])
@pytest.mark.parametrize("fault", ["whole_start", "whole_start:delta"])
def test_a_message_may_stand_whole_in_its_start(
    ask: Any, body: Any, fault: str, prompt: str
) -> None:
    asked = body(prompt, tools=TOOLS, stream=True)
    plain, whole = ask(asked), ask(asked, x_emulator_fault=fault)
    message = whole.events[0][1]["message"]
    kinds = [name for name, _ in whole.events]
    assert kinds == ["message_start", *["message_delta"] * fault.count(":"), "message_stop"]
    final = plain.events[-2][1]
    assert message["stop_reason"] == final["delta"]["stop_reason"]
    assert message["usage"]["output_tokens"] == final["usage"]["output_tokens"]
    made = assemble(plain.events)
    assert [block | {"id": ""} for block in message["content"]] == [b | {"id": ""} for b in made]
    bills = [ask.emulator.bills[answered.headers["request-id"]] for answered in (plain, whole)]
    assert bills[0].cost_micros == bills[1].cost_micros
    assert bills[1].complete


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["whole_start", "whole_start:delta", "blank_first"])
async def test_the_sdk_reads_it_to_the_end(served: EmulatorServer, fault: str) -> None:
    prompt: Any = [user(TEXT)]
    headers = {"x-emulator-fault": fault}
    async with (
        anthropic.AsyncAnthropic(api_key="sk-a", base_url=served.url, max_retries=0) as client,
        client.messages.stream(
            model="claude-sonnet-5-5", max_tokens=500, messages=prompt, extra_headers=headers
        ) as stream,
    ):
        message = await stream.get_final_message()
    assert message.stop_reason == "end_turn"
    assert message.content[-1].type == "text"


def test_pings_stand_anywhere(ask: Any, body: Any) -> None:
    events = ask(body(stream=True), x_emulator_fault="pings_between").events
    kinds = [name for name, _ in events]
    assert (kinds[0], kinds[-1]) == ("ping", "message_stop")
    assert {after for kind, after in pairwise(kinds[:-1]) if kind != "ping"} == {"ping"}


def test_an_answer_may_begin_with_whitespace_before_it_thinks(ask: Any, body: Any) -> None:
    asked = body(thinking={"type": "adaptive"})
    content = ask(asked, x_emulator_fault="blank_first").json["content"]
    assert [block["type"] for block in content] == ["text", "thinking", "text"]
    assert content[0]["text"] == "\n\n"
    asked["messages"] += [assistant(*content), user(TEXT)]
    assert ask(asked).status == 200


def test_a_model_that_may_think_may_leave_it(ask: Any, body: Any) -> None:
    asked = body(model="claude-fable-5-2")
    assert ask(asked).json["content"][0]["type"] == "thinking"
    content = ask(asked, x_emulator_fault="no_thinking").json["content"]
    assert [block["type"] for block in content] == ["text"]


@pytest.mark.parametrize("is_streamed", [True, False])
def test_thinking_may_take_all_the_room_there_is(ask: Any, body: Any, is_streamed: bool) -> None:
    answered = ask(body(model="claude-opus-5-5", max_tokens=60, stream=is_streamed))
    if is_streamed:
        content, final = assemble(answered.events), answered.events[-2][1]
        stop, usage = final["delta"]["stop_reason"], final["usage"]
    else:
        message = answered.json
        content, stop, usage = message["content"], message["stop_reason"], message["usage"]
    assert ([block["type"] for block in content], stop) == (["thinking"], "max_tokens")
    assert usage["output_tokens"] == usage["output_tokens_details"]["thinking_tokens"] == 60


def test_with_less_effort_it_leaves_room(ask: Any, body: Any) -> None:
    asked = body("Hello", model="claude-opus-5-5", max_tokens=90, output_config={"effort": "low"})
    assert ask(asked).json["content"][-1]["type"] == "text"
