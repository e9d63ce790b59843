from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from conversations.agent.ports import Ending, Head, ModelFailed, Piece, ToolDone
from conversations.agent.stop import Stopped, Switch
from conversations.agent.tool_calls import CANCELLED, STOPPED_WITHIN
from tests.agent.fakes import FakeModel, World, cancelled, forever, job, look
from tests.agent.laws import check_usable
from tests.agent.streams import calls, ended, says, start, text, thought, use

pytestmark = pytest.mark.asyncio
STOPPED = ("cancelled", "stopped")


async def test_a_stop_before_the_first_event_keeps_nothing_and_closes_the_call() -> None:
    world = World()
    finish = await world.run([world.stop_and_wait])
    assert (finish.state, finish.reason) == STOPPED
    assert world.calls.endings[1].status == "stopped"
    assert world.calls.endings[1].usage is None
    assert world.model.closed == 1
    await check_usable(world)


async def test_a_stop_in_mid_text_keeps_the_text_and_bills_what_came() -> None:
    world = World()
    finish = await world.run(
        [start(), *thought(0), *text(1, "As far as this")[:-1], world.stop_and_wait]
    )
    assert (finish.state, finish.reason) == STOPPED
    _, content = world.log.messages[-1]
    assert [block["type"] for block in content] == ["thinking", "text"]
    ending = world.calls.endings[1]
    assert (ending.status, ending.request_id) == ("stopped", "req_1")
    assert ending.received_tokens > 0
    assert ending.usage is not None
    await check_usable(world)


async def test_a_stop_behind_a_whole_tool_call_in_mid_answer_drops_the_call() -> None:
    world = World()
    finish = await world.run([start(), *text(0, "I look."), *use(1, "t"), world.stop_and_wait])
    assert (finish.state, finish.reason) == STOPPED
    assert world.tools.log == []
    assert world.log.messages[-1] == ("answer", [{"type": "text", "text": "I look."}])
    await check_usable(world)


class LateStop(FakeModel):
    """A model whose stop arrives while the finished stream is being closed."""

    world: World

    async def stream(self, body: str, headers: Any = None) -> AsyncGenerator[Head | Piece, None]:
        try:
            async for item in super().stream(body, headers):
                yield item
        finally:
            self.world.stop()
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("wants_tools", [True, False])
async def test_a_stop_as_the_stream_completes_keeps_the_whole_answer(wants_tools: bool) -> None:
    model = LateStop()
    model.world = world = World(model=model)
    finish = await world.run(calls("toolu_1") if wants_tools else says("All of it."))
    assert world.calls.endings[1].status == "complete"
    if wants_tools:
        assert (finish.state, finish.reason) == STOPPED
        assert world.tools.log == [("cancelled", "toolu_1")]
        assert world.tools.ran == []
    else:
        # The answer was whole: there was nothing left to stop.
        assert (finish.state, finish.reason) == ("done", "end_turn")
    world.model = FakeModel()
    await check_usable(world)


async def test_a_failure_while_a_finished_stream_is_closed_does_not_spoil_the_answer() -> None:
    class Failing(FakeModel):
        async def stream(
            self, body: str, headers: Any = None
        ) -> AsyncGenerator[Head | Piece, None]:
            try:
                async for item in super().stream(body, headers):
                    yield item
            finally:
                raise ModelFailed("cut", "reset while closing", may_retry=True)

    world = World(model=Failing())
    finish = await world.run(says("All of it."))
    assert finish.reason == "end_turn"
    assert world.calls.endings[1].status == "complete"
    assert len(world.calls.bodies) == 1


async def test_a_stop_in_mid_tool_cancels_it_and_still_writes_the_results() -> None:
    world = World(job(parallel_tools=2))

    async def long(_: Any) -> ToolDone:
        await world.stop_and_wait()
        raise AssertionError

    world.tools.run_by_name["long"] = long
    events = [start(), *use(0, "t_quick"), *use(1, "t_long", "long"), *use(2, "t_next", "long")]
    finish = await world.run([*events, *ended("tool_use")])
    assert (finish.state, finish.reason) == STOPPED
    kind, content = world.log.messages[-1]
    assert kind == "results"
    assert [block["tool_use_id"] for block in content] == ["t_quick", "t_long", "t_next"]
    assert [block.get("is_error", False) for block in content] == [False, True, True]
    # What had left may have changed something; what had not left has not.
    assert [block["content"] for block in content[1:]] == [STOPPED_WITHIN, CANCELLED]
    states = {call: state for state, call in world.tools.log}
    assert states == {"t_quick": "ok", "t_long": "cancelled", "t_next": "cancelled"}
    await check_usable(world)


async def test_a_tool_that_fails_because_it_was_stopped_is_cancelled_not_broken() -> None:
    world = World()

    async def clumsy(_: Any) -> ToolDone:
        try:
            await world.stop_and_wait()
        except asyncio.CancelledError as error:
            raise OSError("connection closed") from error
        raise AssertionError

    world.tools.run_by_name["clumsy"] = clumsy
    finish = await world.run(calls("toolu_1", name="clumsy"))
    assert (finish.state, finish.reason) == STOPPED
    assert world.tools.log[-1] == ("cancelled", "toolu_1")
    await check_usable(world)


async def test_a_tool_that_ends_well_in_spite_of_a_stop_keeps_its_result() -> None:
    world = World()

    async def stubborn(_: Any) -> ToolDone:
        try:
            await world.stop_and_wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return ToolDone('"written"', "ok")

    world.tools.run_by_name["stubborn"] = stubborn
    finish = await world.run(calls("toolu_1", name="stubborn"))
    assert (finish.state, finish.reason) == STOPPED
    assert world.tools.log[-1] == ("ok", "toolu_1")
    await check_usable(world)


async def test_a_stop_during_backoff_ends_the_turn_at_once() -> None:
    world = World()
    world.on_pause = world.stop_and_wait
    finish = await world.run([ModelFailed("overloaded", "Busy.", may_retry=True)])
    assert (finish.state, finish.reason) == STOPPED
    assert len(world.calls.bodies) == 1
    await check_usable(world)


async def test_a_stop_between_rounds_sends_nothing_more() -> None:
    world = World()

    async def last(input: Any) -> ToolDone:
        done = await look(input)
        world.switch.request("user")
        return done

    world.tools.run_by_name["last"] = last
    finish = await world.run(calls("toolu_1", name="last"))
    assert (finish.state, finish.reason) == STOPPED
    assert world.tools.log[-1] == ("ok", "toolu_1")
    assert len(world.calls.bodies) == 1
    await check_usable(world)


async def test_a_stop_before_the_turn_begins_sends_nothing() -> None:
    world = World()
    world.switch.request("user")
    finish = await world.run()
    assert (finish.state, finish.reason) == STOPPED
    assert world.calls.bodies == []


async def test_a_stop_is_no_interruption_of_a_write() -> None:
    world = World()

    async def slow(_: Ending) -> None:
        world.stop()
        await asyncio.sleep(0.01)

    world.calls.on_close = slow
    finish = await world.run(says("All of it."))
    assert finish.reason == "end_turn"
    assert world.calls.endings[1].status == "complete"


async def test_of_two_stops_the_first_reason_stands() -> None:
    world = World()

    async def twice() -> None:
        world.stop("time")
        await world.stop_and_wait()

    finish = await world.run([start(), *text(0, "Hi"), twice])
    assert (finish.state, finish.reason, finish.code) == ("failed", "loop_limit", "turn_time")
    await check_usable(world)


@pytest.mark.parametrize("reason", ["shutdown", "lease"])
async def test_a_stop_by_the_server_interrupts_the_turn(reason: str) -> None:
    world = World()

    async def stop() -> None:
        world.stop(reason)
        await forever()

    finish = await world.run([start(), *text(0, "Hi"), stop])
    assert (finish.state, finish.reason, finish.code) == ("interrupted", reason, "interrupted")


async def test_a_lost_lease_found_by_a_write_interrupts_the_turn() -> None:
    world = World()

    async def lost(_: Ending) -> None:
        raise Stopped("lease")

    world.calls.on_close = lost
    finish = await world.run(says("Hi"))
    assert (finish.state, finish.reason) == ("interrupted", "lease")
    assert [kind for kind, _ in world.log.messages] == ["prompt"]


async def test_a_shutdown_by_cancellation_propagates_and_writes_nothing_half() -> None:
    world, reached = World(), asyncio.Event()

    async def hang() -> None:
        reached.set()
        await forever()

    task = asyncio.create_task(world.run([start(), *text(0, "Hi")[:-1], hang]))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.calls.endings == {}
    assert [kind for kind, _ in world.log.messages] == ["prompt"]
    assert world.model.closed == 1


async def test_a_shutdown_in_mid_tool_leaves_no_tool_running() -> None:
    world = World()

    async def long(_: Any) -> ToolDone:
        await forever()
        raise AssertionError

    world.tools.run_by_name["long"] = long
    task = asyncio.create_task(world.run(calls("toolu_1", "toolu_2", name="long")))
    async with asyncio.timeout(60):
        while world.tools.running < 2:
            await asyncio.sleep(0)
    await cancelled(task)
    assert task.cancelled()
    assert world.tools.running == 0
    assert [kind for kind, _ in world.log.messages] == ["prompt", "answer"]


async def test_a_shutdown_together_with_a_stop_propagates() -> None:
    world, reached = World(), asyncio.Event()

    async def hang() -> None:
        reached.set()
        await forever()

    task = asyncio.create_task(world.run([start(), hang]))
    await reached.wait()
    world.switch.request("user")
    await cancelled(task)
    assert task.cancelled()


async def test_a_wait_that_ends_by_itself_leaves_no_trace_of_the_stop() -> None:
    switch = Switch()
    task = asyncio.current_task()
    assert task is not None
    with switch.interruptible():
        try:
            asyncio.get_running_loop().call_soon(switch.request, "user")
            await forever()
        except asyncio.CancelledError:
            pass
    assert task.cancelling() == 0
    with pytest.raises(Stopped), switch.interruptible():
        raise AssertionError


async def test_an_error_in_a_wait_that_nobody_stopped_is_its_own() -> None:
    switch = Switch()
    with pytest.raises(OSError, match="plain"), switch.interruptible():
        raise OSError("plain")


async def test_a_task_that_asks_for_the_stop_itself_is_not_interrupted_in_its_next_write() -> None:
    switch = Switch()
    with switch.interruptible():
        switch.request("user")
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert switch.reason == "user"


async def test_the_history_is_legal_wherever_the_stop_arrives() -> None:
    events = [start(), *thought(0), *text(1, "I look."), *use(2, "t_1"), *use(3, "t_2")]
    script = [*events, *ended("tool_use")]
    for at in range(len(script)):
        world = World()
        await world.run([*script[:at], world.stop_and_wait, *script[at:]])
        assert world.tools.ran == []
        await check_usable(world)
