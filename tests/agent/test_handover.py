"""A turn whose process shuts down is left to another one at a point where that loses nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conversations.agent.ports import ModelFailed, ToolDone
from conversations.agent.resume import OpenRound, TurnProgress
from conversations.agent.stop import LEFT, Stopped, Switch
from tests.agent.fakes import World, cancelled, forever, look
from tests.agent.laws import check_usable
from tests.agent.streams import calls, says
from tests.agent.test_resuming import uses

pytestmark = pytest.mark.asyncio
LEAVES = ("running", "left")


async def test_it_is_left_before_its_first_call() -> None:
    world = World()
    world.switch.leave()
    finish = await world.run(says("Never said."))
    assert (finish.state, finish.reason) == LEAVES
    assert world.calls.bodies == []


async def test_an_answer_on_its_way_is_whole_and_ends_the_turn() -> None:
    world = World()

    async def leave() -> None:
        world.switch.leave()
        await asyncio.sleep(0)

    reply = says("All of it.")
    finish = await world.run([*reply[:-2], leave, *reply[-2:]])
    assert finish.state == "done"


async def test_tools_that_were_asked_for_are_run_by_the_next() -> None:
    world = World()

    async def leave() -> None:
        world.switch.leave()

    reply = calls("toolu_1")
    finish = await world.run([*reply[:-1], leave, reply[-1]])
    assert (finish.state, finish.reason) == LEAVES
    assert world.tools.log == []
    open_round = OpenRound(1, uses("toolu_1"))
    begun = TurnProgress(first=1, rounds=1, ids=frozenset({"toolu_1"}), open=open_round)
    assert (await world.resume(begun, says("Done."))).state == "done"
    assert len(world.tools.ran) == 1
    await check_usable(world)


async def test_a_tool_on_its_way_ends_and_the_next_call_is_not_made() -> None:
    world = World()

    async def leaving(input: Any) -> ToolDone:
        world.switch.leave()
        return await look(input)

    world.tools.run_by_name["look"] = leaving
    finish = await world.run(calls("toolu_1"), says("Never said."))
    assert (finish.state, finish.reason) == LEAVES
    assert world.log.messages[-1][0] == "results"
    assert len(world.calls.bodies) == 1


async def test_a_pause_between_two_attempts_is_cut_short() -> None:
    world = World()

    async def leave() -> None:
        asyncio.get_running_loop().call_soon(world.switch.leave)
        await forever()

    world.on_pause = leave
    finish = await world.run([ModelFailed("overloaded", "Busy.", may_retry=True)])
    assert (finish.state, finish.reason) == LEAVES


async def test_a_stop_goes_before_leaving() -> None:
    world = World()
    world.switch.leave()
    world.switch.request("user")
    assert (await world.run(says("Never said."))).state == "cancelled"


async def test_a_task_is_woken_once_by_leaving_and_a_stop_together() -> None:
    switch = Switch()

    async def wait() -> str:
        try:
            with switch.pausing():
                await forever()
        except Stopped as stop:
            return stop.reason
        return ""

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    switch.leave()
    switch.request("user")
    assert await task == "user"


async def test_what_does_not_pause_is_not_woken_by_leaving() -> None:
    switch = Switch()

    async def wait() -> None:
        with switch.interruptible():
            await forever()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    switch.leave()
    await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await cancelled(task)
    with pytest.raises(Stopped, match=LEFT), switch.pausing():
        raise AssertionError
