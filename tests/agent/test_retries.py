from __future__ import annotations

from typing import Any

import pytest

from conversations.agent.events import TurnChanged
from conversations.agent.ports import ModelFailed
from tests.agent.fakes import World, job
from tests.agent.laws import check_usable
from tests.agent.streams import (
    Events,
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
BUSY = ModelFailed("overloaded", "The model is overloaded.", 529, may_retry=True)


def limited(seconds: float | None) -> ModelFailed:
    return ModelFailed("rate_limited", "Slow down.", 429, seconds, may_retry=True)


async def test_a_failure_before_anything_was_shown_is_tried_again() -> None:
    world = World()
    finish = await world.run([BUSY], [start(), BUSY], [start(), *use(0, "t"), BUSY], says("Hi"))
    assert finish.reason == "end_turn"
    assert [sending.attempt for sending in world.calls.sendings] == [1, 2, 3, 4]
    assert len(set(world.calls.bodies)) == 1
    assert [world.calls.endings[n].status for n in range(1, 5)] == [
        "error",
        "truncated",
        "truncated",
        "complete",
    ]
    assert world.display.states == [
        ("running", 1, 0.0),
        ("backoff", 2, 1.0),
        ("running", 2, 0.0),
        ("backoff", 3, 2.0),
        ("running", 3, 0.0),
        ("backoff", 4, 4.0),
        ("running", 4, 0.0),
    ]
    assert world.display.told.count(TurnChanged(1)) == 3
    await check_usable(world)


async def test_attempts_are_counted_and_the_last_failure_ends_the_turn() -> None:
    world = World(job(attempts=3))
    finish = await world.run([BUSY], [BUSY], [limited(None)], says("Never."))
    assert (finish.state, finish.reason, finish.code) == ("failed", "", "rate_limited")
    assert finish.text == "Slow down."
    assert len(world.calls.bodies) == 3
    await check_usable(world)


async def test_own_waits_grow_and_are_bounded() -> None:
    world = World(job(attempts=8, backoff_seconds=5))
    await world.run(*[[BUSY]] * 8)
    assert world.pauses == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("asked", "waited"), [(30.0, 30.0), (60.0, 60.0), (0.0, 1.0), (-5.0, 1.0), (None, 1.0)]
)
async def test_the_wait_the_api_asks_for_is_honoured(asked: float | None, waited: float) -> None:
    world = World()
    finish = await world.run([limited(asked)], says("Hi"))
    assert finish.reason == "end_turn"
    assert world.pauses == [waited]


@pytest.mark.parametrize("asked", [60.5, 3600.0, 1e7])
async def test_a_wait_longer_than_the_cap_is_not_slept(asked: float) -> None:
    world = World()
    finish = await world.run([limited(asked)])
    assert (finish.state, finish.code) == ("failed", "rate_limited")
    assert world.pauses == []
    await check_usable(world)


async def test_a_failure_that_no_attempt_helps_is_final() -> None:
    world = World()
    finish = await world.run([ModelFailed("authentication", "Bad key.", 401)])
    assert (finish.state, finish.code) == ("failed", "authentication")
    assert len(world.calls.bodies) == 1


@pytest.mark.parametrize(
    "shown", [text(0, "As far")[:-1], text(0, "As far"), [*thought(0), *text(1, "As far")]]
)
@pytest.mark.parametrize("end", [BUSY, None])
async def test_once_text_was_shown_it_is_kept_and_not_asked_again(
    shown: Events, end: ModelFailed | None
) -> None:
    world = World()
    finish = await world.run([start(), *shown, *([end] if end else [])], says("Never."))
    assert (finish.state, finish.code) == ("failed", "overloaded" if end else "cut")
    assert len(world.calls.bodies) == 1
    kind, content = world.log.messages[-1]
    assert kind == "answer"
    assert content[-1] == {"type": "text", "text": "As far"}
    ending = world.calls.endings[1]
    assert ending.status == "truncated"
    assert ending.failure is not None
    assert not ending.failure.may_retry
    assert ending.received_tokens > 0
    await check_usable(world)


async def test_results_that_were_kept_rule_out_another_attempt_too() -> None:
    world = World()
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    searched = [*complete_block(call), *complete_block(found, 1)]
    finish = await world.run([start(), *searched, BUSY], says("Never."))
    assert (finish.state, finish.code) == ("failed", "overloaded")
    assert len(world.calls.bodies) == 1
    kind, content = world.log.messages[-1]
    assert (kind, [block["type"] for block in content]) == ("answer", [call["type"], found["type"]])
    await check_usable(world)


async def test_thinking_that_was_shown_rules_out_another_attempt_too() -> None:
    world = World()
    finish = await world.run([start(), *thought(0), BUSY], says("Never."))
    assert (finish.state, finish.code) == ("failed", "overloaded")
    assert [kind for kind, _ in world.log.messages] == ["prompt"]
    await check_usable(world)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [start()],
        [start(), opened(0, {"type": "text", "text": ""})],
        [start(), *ended("end_turn")[:1]],
    ],
)
async def test_a_clean_end_before_the_message_stopped_is_a_cut(events: Events) -> None:
    world = World(job(attempts=1))
    finish = await world.run(events)
    assert (finish.state, finish.code) == ("failed", "cut")
    await check_usable(world)


@pytest.mark.parametrize(
    "event",
    [
        start(),
        {"type": "message_start"},
        {"type": "content_block_stop", "index": 7},
        {"type": "content_block_stop", "index": "0"},
        {"type": "content_block_stop"},
        opened(3, {"type": "text", "text": ""}),
        opened(0, {"type": ["text"]}),
        opened(0, {"type": "text", "text": 5}),
        opened(0, {"type": "text", "text": "", "citations": "abc"}),
        opened(0, {"type": "thinking", "signature": [1]}),
        delta(0, type="text_delta", text="x"),
        {"type": "message_delta", "delta": None},
        {"type": "message_stop"},
        ended(None)[1],
    ],
)
async def test_a_stream_that_breaks_the_protocol_is_tried_again(event: dict[str, Any]) -> None:
    world = World()
    finish = await world.run([start(), event], says("Hi"))
    assert finish.reason == "end_turn"
    failure = world.calls.endings[1].failure
    assert failure is not None
    assert failure.code == "protocol_error"
    await check_usable(world)


async def test_a_request_id_of_the_failure_is_kept() -> None:
    world = World(job(attempts=1))
    await world.run([ModelFailed("upstream", "No.", 500, None, "req_9", may_retry=True)])
    assert world.calls.endings[1].request_id == "req_9"
