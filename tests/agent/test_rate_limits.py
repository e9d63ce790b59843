"""A call that a limit a minute does not allow waits for the next minute, wherever in the turn."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from conversations.agent.events import RoundOpened, TurnChanged
from conversations.agent.ports import MOST_WAITS, RateLimitReached
from tests.agent.fakes import World, forever
from tests.agent.laws import check_usable
from tests.agent.streams import calls, says
from tests.agent.test_reductions import kinds, summary_of
from tests.agent.test_reductions import world as remembering

pytestmark = pytest.mark.asyncio
FULL = RateLimitReached("rate_limit", "Reached.", seconds=23.0, waits_for="requests 5")


class Always(dict[int, Any]):
    """Refuses every attempt to open a call."""

    def __contains__(self, key: object) -> bool:
        return True

    def pop(self, key: int, *_: object) -> RateLimitReached:
        return FULL


async def test_a_call_in_mid_turn_waits_and_the_turn_goes_on() -> None:
    world = World()
    world.calls.refuses[2] = FULL
    finish = await world.run(calls("toolu_1"), says("Done."))
    assert finish.reason == "end_turn"
    # The halves of a second or two spread those who wait for the same minute.
    assert world.pauses == [24.0]
    assert world.display.states == [
        ("running", 1, 0.0), ("running", 1, 0.0), ("backoff", 1, 24.0), ("running", 1, 0.0)
    ]  # fmt: skip
    assert world.display.waits == ["requests 5"]
    last = world.display.told[-2:]
    assert last == [TurnChanged(1), RoundOpened(1, 2, True)]
    assert [row.attempt for row in world.calls.sendings] == [1, 1]
    await check_usable(world)


async def test_a_summary_waits_too_and_the_page_hears_that_it_goes_on() -> None:
    w = remembering()
    w.model.summaries = [summary_of(w), summary_of(w)]
    w.calls.refuses[1] = FULL
    await w.run(says("Hi"))
    assert ("summary", "applied") in kinds(w)
    assert w.pauses == [24.0]
    assert w.display.told[:2] == [TurnChanged(1), TurnChanged(1)]


async def test_the_wait_is_bounded_and_its_end_says_why() -> None:
    world = World()
    world.calls.refuses = Always()
    finish = await world.run(says("Never said."))
    assert (finish.state, finish.reason, finish.code) == ("failed", "budget", "rate_limit")
    assert finish.text == "Reached."
    assert len(world.pauses) == MOST_WAITS


@pytest.mark.parametrize(
    ("how", "state"), [("user", "cancelled"), ("time", "failed"), ("leave", "running")]
)
async def test_a_stop_and_a_handover_end_the_wait(how: str, state: str) -> None:
    world = World()
    world.calls.refuses[1] = FULL

    async def end() -> None:
        act = world.switch.leave if how == "leave" else partial(world.switch.request, how)
        asyncio.get_running_loop().call_soon(act)
        await forever()

    world.on_pause = end
    finish = await world.run(says("Never said."))
    assert finish.state == state
    assert world.calls.bodies == []
