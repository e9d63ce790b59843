from __future__ import annotations

import json
from typing import Any

import pytest

from conversations.agent.events import MeterMoved, RoundChanged, RoundOpened
from conversations.agent.ports import Refused
from tests.agent.fakes import FakeLog, World, job
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import (
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

pytestmark = pytest.mark.asyncio


async def test_a_plain_answer_is_shown_stored_and_ends_the_turn() -> None:
    world = World()
    finish = await world.run([start(), *text(0, "He", "llo"), *ended("end_turn")])
    assert (finish.state, finish.reason, finish.code) == ("done", "end_turn", "")
    assert world.display.text == "Hello"
    assert world.log.messages[-1] == ("answer", [{"type": "text", "text": "Hello"}])
    ending = world.calls.endings[1]
    assert (ending.status, ending.stop_reason, ending.request_id) == (
        "complete",
        "end_turn",
        "req_1",
    )
    assert world.model.closed == 1
    assert world.display.told == [RoundOpened(1, 1)]
    await check_usable(world)


async def test_the_meter_is_told_where_it_moves_within_a_turn() -> None:
    """Behind an answer that asks for tools, and with their results; the ends have their own."""
    world = World()
    await world.run(calls("toolu_1"), says("Done."))
    told = [event for event in world.display.told if not isinstance(event, RoundChanged)]
    assert told == [RoundOpened(1, 1), MeterMoved(), MeterMoved(), RoundOpened(1, 2)]


async def test_usage_is_that_of_the_last_cumulative_figures() -> None:
    world = World()
    first = {"input_tokens": 900, "output_tokens": 2, "cache_read_input_tokens": 50}
    tail = ended("end_turn", 11, input_tokens=400)
    await world.run([start(first), *text(0, "Hi"), *ended(None, 5)[:1], *tail])
    usage = world.calls.endings[1].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read) == (400, 11, 50)


async def test_an_answer_without_usage_leaves_the_last_report_in_force() -> None:
    world = World()
    silent = [start(None), *text(0, "Hi")]
    silent += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, ended("x")[1]]
    assert (await world.run(silent)).state == "done"
    assert world.calls.endings[1].usage is None


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "stop_sequence"),
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context"),
        ("meditation", "truncated"),
        ("tool_use", "truncated"),
        ("x" * 500, "truncated"),
    ],
)
async def test_every_stop_reason_ends_the_turn_with_its_text_kept(reason: str, shown: str) -> None:
    world = World()
    finish = await world.run(says("As far as this", reason))
    assert (finish.state, finish.reason) == ("done", shown)
    assert world.log.messages[-1] == ("answer", [{"type": "text", "text": "As far as this"}])
    assert world.calls.endings[1].stop_reason == reason[:40]
    assert world.calls.endings[1].status == ("refused" if reason == "refusal" else "complete")
    await check_usable(world)


@pytest.mark.parametrize(
    "events",
    [
        [],
        text(0, " \n"),
        text(0),
        thought(0),
        [*thought(0), *text(1, "")],
        complete_block({"type": "redacted_thinking", "data": "abc"}),
        complete_block({"type": "hologram", "data": "x"}),
        complete_block({"type": "server_tool_use", "id": "srvtoolu_1", "name": "s", "input": {}}),
        complete_block(
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_0", "content": []}
        ),
        complete_block({"type": "image", "source": {}}),
        use(0, "toolu_1"),
    ],
)
async def test_an_answer_with_nothing_to_send_back_ends_the_turn_and_stores_nothing(
    events: list[dict[str, Any]],
) -> None:
    world = World()
    finish = await world.run([start(), *events, *ended("end_turn")])
    assert (finish.state, finish.reason) == ("done", "end_turn")
    assert [kind for kind, _ in world.log.messages] == ["prompt"]
    assert world.tools.ran == []
    await check_usable(world)


async def test_thinking_is_kept_before_text_and_never_stands_last() -> None:
    world = World()
    await world.run([start(), *thought(0), *text(1, "So."), *thought(2), *ended("end_turn")])
    _, content = world.log.messages[-1]
    assert [block["type"] for block in content] == ["thinking", "text"]
    assert world.display.thinking == "hmhm"


async def test_a_paused_turn_is_sent_back_as_it_is_a_bounded_number_of_times() -> None:
    def paused(number: int) -> list[dict[str, Any]]:
        call_id = f"srvtoolu_{number}"
        call = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}
        asked = [
            opened(0, call),
            delta(0, type="input_json_delta", partial_json='{"query":"x"}'),
            closed(0),
        ]
        result = {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}
        return [start(), *asked, *complete_block(result, 1), *ended("pause_turn")]

    world = World(job(pauses=2))
    finish = await world.run(*map(paused, range(3)))
    assert (finish.state, finish.reason) == ("done", "pause_turn")
    assert len(world.calls.bodies) == 3
    assert json.loads(world.calls.bodies[1])["messages"][1]["content"][0] == {
        "type": "server_tool_use",
        "id": "srvtoolu_0",
        "name": "web_search",
        "input": {"query": "x"},
    }
    await check_usable(world)


async def test_a_pause_that_cannot_be_sent_back_ends_the_turn() -> None:
    world = World()
    finish = await world.run(says("I am still at it.", "pause_turn"))
    assert (finish.state, finish.reason) == ("done", "pause_turn")
    await check_usable(world)


async def test_an_empty_pause_is_asked_again() -> None:
    world = World()
    finish = await world.run([start(), *ended("pause_turn")], says("Done."))
    assert finish.reason == "end_turn"
    assert world.calls.bodies[0] == world.calls.bodies[1]


async def test_rounds_are_capped_and_the_history_stays_usable() -> None:
    world = World(job(rounds=3))
    finish = await world.run(*(calls(f"toolu_{number}") for number in range(3)))
    assert (finish.state, finish.reason) == ("done", "loop_limit")
    assert len(world.calls.bodies) == 3
    await check_usable(world)


async def test_a_call_the_budget_refuses_ends_the_turn_with_its_reason() -> None:
    world = World()
    world.calls.refuses[2] = Refused("budget", "Your budget is used up.")
    finish = await world.run(calls("toolu_1"))
    assert (finish.state, finish.reason, finish.code) == ("failed", "budget", "budget")
    assert finish.text == "Your budget is used up."
    assert world.tools.ran == [("toolu_1", {})]
    await check_usable(world)


async def test_a_model_without_a_price_is_refused_before_anything_is_sent() -> None:
    world = World()
    world.calls.refuses[1] = Refused("price_missing", "No price.")
    finish = await world.run()
    assert (finish.state, finish.reason, finish.code) == ("failed", "", "price_missing")
    assert world.calls.bodies == []


async def test_an_event_that_cannot_be_shown_does_not_end_the_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.display.fails = True
    finish = await world.run(calls("toolu_1"), says("Done."))
    assert finish.reason == "end_turn"
    assert "was not shown" in caplog.text
    await check_usable(world)


async def test_a_history_that_breaks_a_rule_is_never_sent() -> None:
    log = FakeLog()
    log.put("answer", "[]")
    world = World(log=log)
    world.log.entries[1:] = []
    finish = await world.run(says("Hello?"))
    assert finish.state == "done"
    assert [change.kind for change, _ in world.log.recorded] == ["repair"]
    assert "could not be sent" in world.calls.bodies[0]


async def test_a_port_that_breaks_ends_the_run_loudly() -> None:
    world = World()
    world.log.fails = OSError("disk full")
    with pytest.raises(OSError, match="disk full"):
        await world.run(calls("toolu_1"))


async def test_the_report_is_anchored_on_the_last_answer() -> None:
    world = World()
    await world.run(calls("toolu_1"), says("Done."))
    assert [s.estimated_tokens for s in world.calls.sendings] == sorted(
        s.estimated_tokens for s in world.calls.sendings
    )
    # The first call is estimated, the second one moves what the API reported of the first.
    reported = 100 + 7
    assert world.calls.sendings[1].estimated_tokens > reported
    check_log(world)
