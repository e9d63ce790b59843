"""A refused exchange, a tool call cut by the limit, and calls that can never run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.agent.finish import LEFT_OUT, WRONG_CALLS
from conversations.agent.ports import ModelFailed, Refused, Sending, Sent, ToolDone
from conversations.context.policy.policy import PRESETS
from conversations.context.view import wire
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import Events, calls, closed, ended, opened, says, start, text, thought
from tests.agent.streams import use as tool
from tests.agent.twins import World, job, look

pytestmark = pytest.mark.asyncio


def refuses(*shown: dict[str, Any], details: Any = None) -> Events:
    delta = {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    tail = [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}]
    return [start(), *shown, *tail, {"type": "message_stop"}]


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (None, ""),
        ({}, ""),
        ("no", ""),
        ({"type": "refusal", "category": None, "explanation": None}, ""),
        ({"type": "refusal", "category": "", "explanation": " "}, ""),
        ({"type": "refusal", "category": "cyber", "explanation": None}, "Its reason: cyber. "),
        ({"category": ["x"], "explanation": "I\0 will not. "}, "I\ufffd will not. "),
        ({"explanation": "é" * 900}, "é" * 500 + " "),
    ],
)
async def test_a_refusal_is_shown_in_its_own_words(details: Any, words: str) -> None:
    world = World()
    finish = await world.run(refuses(details=details))
    assert (finish.state, finish.reason, finish.code) == ("done", "refusal", "")
    assert finish.text == words + LEFT_OUT
    await check_usable(world)


@pytest.mark.parametrize("shown", [[], text(0, "As far"), [*thought(0), *text(1, "As far")]])
async def test_a_refused_exchange_is_left_out_of_the_next_request_and_that_is_recorded(
    shown: Events,
) -> None:
    world = World()
    await world.run(says("Hello to you."))
    await world.go_on("Do the forbidden", refuses(*shown))
    change, call = world.log.recorded[-1]
    assert (change.kind, change.outcome, call) == ("trim", "applied", None)
    assert "refused" in change.note
    assert change.bytes_after < change.bytes_before
    await world.go_on("And now?", says("Now this."))
    sent = json.loads(world.calls.bodies[-1])["messages"]
    said = [block["text"] for message in sent for block in message["content"]]
    assert said == ["Hello", "Hello to you.", "And now?"]
    # People still read it.
    assert ("prompt", [{"type": "text", "text": "Do the forbidden"}]) in world.log.said
    await check_usable(world)


async def test_a_refusal_after_tools_leaves_no_half_round() -> None:
    world = World()
    finish = await world.run(calls("toolu_1", "toolu_2"), refuses(*text(0, "No.")))
    assert finish.reason == "refusal"
    assert world.log.view().length == 0
    assert "4 messages" in world.log.recorded[-1][0].note
    await check_usable(world)


async def test_a_vetoed_leaving_out_is_recorded_as_that() -> None:
    world = World()
    world.log.veto = lambda _: "legal hold"
    await world.run(refuses(*text(0, "No.")))
    change, _ = world.log.recorded[-1]
    assert (change.kind, change.outcome, change.reason) == ("trim", "vetoed", "legal hold")
    assert world.log.view().length == 2
    await check_usable(world)


def cut(limit_text: str = '{"text": "Dear rea') -> Events:
    """An answer that asks for a tool and reaches its limit in the middle of the input."""
    block = opened(1, {"type": "tool_use", "id": "toolu_cut", "name": "look", "input": {}})
    part = {"type": "input_json_delta", "partial_json": limit_text}
    grown = {"type": "content_block_delta", "index": 1, "delta": part}
    return [start(), *thought(0), block, grown, closed(1), *ended("max_tokens", 1_000)]


async def test_a_tool_call_cut_by_the_limit_is_asked_once_more_with_a_larger_one() -> None:
    world = World(job(max_output=64_000))
    finish = await world.run(cut(), calls("toolu_1"), says("Done."))
    assert finish.reason == "end_turn"
    limits = [json.loads(body)["max_tokens"] for body in world.calls.bodies]
    assert limits == [1_000, 4_000, 1_000]
    assert [call for call, _ in world.tools.ran] == ["toolu_1"]
    assert "toolu_cut" not in world.calls.bodies[-1]
    assert world.calls.endings[1].status == "complete"
    await check_usable(world)


@pytest.mark.parametrize("most", [0, 1_000])
async def test_where_there_is_no_larger_limit_the_cut_call_ends_the_turn(most: int) -> None:
    world = World(job(max_output=most))
    finish = await world.run(cut())
    assert (finish.state, finish.reason) == ("done", "max_tokens")
    assert len(world.calls.bodies) == 1
    assert [kind for kind, _ in world.log.said] == ["prompt"]
    await check_usable(world)


async def test_a_second_cut_ends_the_turn() -> None:
    world = World(job(max_output=2_000))
    finish = await world.run(cut(), cut())
    assert (finish.state, finish.reason) == ("done", "max_tokens")
    assert [json.loads(body)["max_tokens"] for body in world.calls.bodies] == [1_000, 2_000]
    assert world.tools.log == []
    await check_usable(world)


async def test_a_cut_behind_shown_text_keeps_the_text_and_asks_no_more() -> None:
    world = World(job(max_output=64_000))
    finish = await world.run([start(), *text(0, "I write."), *cut()[5:]])
    assert (finish.state, finish.reason) == ("done", "max_tokens")
    assert world.log.said[-1] == ("answer", [{"type": "text", "text": "I write."}])
    assert len(world.calls.bodies) == 1
    await check_usable(world)


async def test_the_limit_of_the_budget_is_not_raised() -> None:
    world = World(job(max_output=64_000))
    open_call = world.calls.open

    async def limited(sending: Sending) -> Sent:
        sent = await open_call(sending)
        return Sent(sent.call, sent.body, is_limited=True)

    world.calls.open = limited  # type: ignore[method-assign]
    assert (await world.run(cut())).reason == "max_tokens"
    assert len(world.calls.bodies) == 1


async def test_a_larger_limit_may_be_refused_by_the_budget() -> None:
    world = World(job(max_output=64_000))
    world.calls.refuses[2] = Refused("budget", "Your budget is used up.")
    finish = await world.run(cut())
    assert (finish.state, finish.reason) == ("failed", "budget")
    await check_usable(world)


async def wrong(_: Any) -> ToolDone:
    return ToolDone(wire.encode("There is no such tool."), "error", is_wrong=True)


async def test_three_rounds_in_which_no_call_could_run_end_the_turn_in_words() -> None:
    world = World()
    world.tools.run_by_name["rocket"] = wrong
    flawed = [start(), *tool(0, "toolu_2", input="[1]"), *ended("tool_use")]
    finish = await world.run(
        calls("toolu_1", name="rocket"), flawed, calls("toolu_3", name="rocket"), says("Never.")
    )
    assert (finish.state, finish.reason, finish.code) == ("done", "loop_limit", "wrong_calls")
    assert finish.text == WRONG_CALLS
    assert len(world.calls.bodies) == 3
    await check_usable(world)


async def test_one_call_that_runs_begins_the_count_of_wrong_rounds_anew() -> None:
    world = World()
    world.tools.run_by_name["rocket"] = wrong
    mixed = [start(), *tool(0, "m_1", "rocket"), *tool(1, "m_2"), *ended("tool_use")]
    bad = [calls(f"toolu_{number}", name="rocket") for number in range(4)]
    finish = await world.run(*bad[:2], mixed, *bad[2:], says("Sorry."))
    assert finish.reason == "end_turn"
    check_log(world)


async def test_a_tool_that_fails_is_no_wrong_call() -> None:
    world = World()

    async def fails(input: Any) -> ToolDone:
        return ToolDone((await look(input)).content, "error")

    world.tools.run_by_name["look"] = fails
    finish = await world.run(*(calls(f"toolu_{n}") for n in range(5)), says("Sorry."))
    assert finish.reason == "end_turn"


async def test_what_is_too_long_and_cannot_be_made_smaller_is_not_sent_again() -> None:
    world = World(job(PRESETS["classic"]))
    finish = await world.run([ModelFailed("overflow", "Too long.", 413)])
    assert (finish.state, finish.reason, finish.code) == ("failed", "context", "overflow")
    assert len(world.calls.bodies) == 1
    await check_usable(world)


async def test_where_the_budget_allows_no_other_call_no_tool_runs_and_the_history_stays_valid() -> (
    None
):
    world = World()
    world.calls.ends[1] = Refused("budget", "The monthly budget is used up.")
    finish = await world.run(calls("toolu_1", "toolu_2"))
    assert (finish.state, finish.reason, finish.code) == ("failed", "budget", "budget")
    assert finish.text == "The monthly budget is used up."
    assert world.tools.ran == []
    assert [state for state, _ in world.tools.log] == ["denied", "denied"]
    kind, results = world.log.said[-1]
    assert kind == "results"
    assert [block["tool_use_id"] for block in results] == ["toolu_1", "toolu_2"]
    assert {block["content"] for block in results} == {"Not run, stopped: budget"}
    assert all(block["is_error"] for block in results)
    await check_usable(world)


async def test_a_turn_that_has_cost_what_it_may_ends_like_one_that_loops() -> None:
    world = World()
    world.calls.refuses[1] = Refused("turn_money", "This turn may cost $1.00.")
    finish = await world.run(says("Never."))
    assert (finish.state, finish.reason, finish.code) == ("failed", "loop_limit", "turn_money")
