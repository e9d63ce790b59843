"""Another worker resumes a turn: ended calls stay, writes stay unknown, caps keep counting."""

from __future__ import annotations

import pytest

from conversations.agent.answer import ToolUse
from conversations.agent.ports import Refused, ToolDone
from conversations.agent.resume import OpenRound, TurnProgress
from conversations.agent.tool_calls import CUT_SHORT, FLAWED, TOO_MANY
from conversations.context.view import wire
from tests.agent.fakes import World, job
from tests.agent.laws import check_usable
from tests.agent.streams import calls, says
from tests.agent.test_tools import results

pytestmark = pytest.mark.asyncio
NAMES = ("toolu_1", "toolu_2", "toolu_3")


async def died(*names: str, stored: bool = False, world: World | None = None) -> World:
    """Give a world whose worker died behind an answer that calls tools, before the next request."""
    world = world or World()
    world.calls.refuses[2] = Refused("died", "The worker died here.")
    await world.run(calls(*names))
    if not stored:
        # The results were not stored when it died.
        world.log.entries.pop()
    world.tools.log.clear()
    world.tools.ran.clear()
    return world


def uses(*names: str) -> tuple[ToolUse, ...]:
    return tuple(ToolUse(name, "look", "{}") for name in names)


def progress(*names: str, **open: object) -> TurnProgress:
    found = OpenRound(1, uses(*names), **open)  # type: ignore[arg-type]
    return TurnProgress(first=1, rounds=1, ids=frozenset(names), open=found)


async def test_calls_that_had_not_begun_run() -> None:
    world = await died(*NAMES)
    finish = await world.resume(progress(*NAMES), says("Done."))
    assert finish.reason == "end_turn"
    assert [name for name, _ in world.tools.ran] == [*NAMES]
    await check_usable(world)


async def test_calls_that_ended_keep_their_results_and_do_not_run_again() -> None:
    world = await died(*NAMES)
    kept = {
        "toolu_1": ToolDone(wire.encode("the first"), "ok"),
        "toolu_3": ToolDone(wire.encode("no"), "error"),
    }
    await world.resume(progress(*NAMES, done=kept), says("Done."))
    assert [name for name, _ in world.tools.ran] == ["toolu_2"]
    assert world.tools.log == [("started", "toolu_2"), ("ok", "toolu_2")]
    assert [block["content"] for block in results(world)] == ["the first", "seen {}", "no"]
    assert [block.get("is_error", False) for block in results(world)] == [False, False, True]
    await check_usable(world)


@pytest.mark.parametrize("effect", ["read", "keyed"])
async def test_a_call_that_may_be_repeated_runs_again(effect: str) -> None:
    world = await died("toolu_1")
    await world.resume(progress("toolu_1", started={"toolu_1": effect}), says("Done."))
    assert world.tools.log == [("started", "toolu_1"), ("ok", "toolu_1")]
    await check_usable(world)


async def test_a_call_that_may_have_written_does_not_run_and_its_outcome_is_unknown() -> None:
    world = await died("toolu_1", "toolu_2")
    started = {"toolu_1": "write", "toolu_2": "read"}
    finish = await world.resume(progress("toolu_1", "toolu_2", started=started), says("I check."))
    assert finish.reason == "end_turn"
    assert [name for name, _ in world.tools.ran] == ["toolu_2"]
    assert ("unknown", "toolu_1") in world.tools.log
    first = results(world)[0]
    assert (first["content"], first["is_error"]) == (CUT_SHORT, True)
    await check_usable(world)


async def test_a_call_that_may_be_repeated_is_not_judged_again() -> None:
    world = await died("toolu_1")
    world.tools.verdicts["toolu_1"] = ToolDone('"no"', "denied")
    await world.resume(progress("toolu_1", started={"toolu_1": "read"}), says("Done."))
    assert world.tools.log[-1] == ("ok", "toolu_1")


async def test_when_all_calls_ended_only_their_message_is_written() -> None:
    world = await died("toolu_1")
    kept = {"toolu_1": ToolDone(wire.encode("kept"), "ok")}
    await world.resume(progress("toolu_1", done=kept), says("Done."))
    assert world.tools.log == world.tools.ran == []
    assert results(world)[0]["content"] == "kept"


async def test_a_turn_whose_results_were_stored_goes_on_with_the_next_request() -> None:
    world = await died("toolu_1", stored=True)
    finish = await world.resume(TurnProgress(first=1, rounds=1, tool_calls=1), says("Done."))
    assert finish.reason == "end_turn"
    assert world.tools.ran == []
    assert [kind for kind, _ in world.log.messages] == [
        "prompt",
        "answer",
        "results",
        "answer",
    ]
    await check_usable(world)


async def test_an_input_that_could_not_be_read_is_still_not_run() -> None:
    world = await died("toolu_1")
    bad = OpenRound(1, (ToolUse("toolu_1", "look", "{}", "a list"),))
    await world.resume(TurnProgress(1, 1, open=bad), says("Sorry."))
    assert world.tools.ran == []
    assert results(world)[0]["content"] == FLAWED + "a list"


async def test_an_id_of_before_is_taken_also_when_it_left_the_view() -> None:
    world = await died("toolu_1", stored=True)
    state = TurnProgress(first=1, rounds=1, ids=frozenset({"toolu_9"}))
    await world.resume(state, calls("toolu_9"), says("Without."))
    assert world.calls.endings[2].failure is None
    assert [call for call, _ in world.tools.ran] == ["toolu_9_2"]


async def test_rounds_go_on_being_counted() -> None:
    world = await died("toolu_1", stored=True, world=World(job(rounds=3)))
    finish = await world.resume(TurnProgress(first=1, rounds=2), calls("toolu_2"), says("Never."))
    assert (finish.state, finish.reason) == ("done", "loop_limit")
    assert len(world.calls.sendings) == 2


async def test_tool_calls_go_on_being_counted() -> None:
    world = await died(*NAMES, world=World(job(tool_calls=5)))
    state = TurnProgress(1, 1, tool_calls=3, open=OpenRound(1, uses(*NAMES)))
    finish = await world.resume(state, says("Never."))
    assert (finish.state, finish.reason) == ("done", "loop_limit")
    assert [name for name, _ in world.tools.ran] == ["toolu_1", "toolu_2"]
    assert results(world)[2]["content"] == TOO_MANY


async def test_a_turn_that_had_used_up_its_calls_ends_at_once() -> None:
    world = await died("toolu_1", stored=True, world=World(job(tool_calls=5)))
    finish = await world.resume(TurnProgress(first=1, rounds=1, tool_calls=6), says("Never."))
    assert (finish.state, finish.reason) == ("done", "loop_limit")
    assert len(world.calls.sendings) == 1


async def test_wrong_rounds_go_on_being_counted() -> None:
    world = await died("toolu_1")
    kept = {"toolu_1": ToolDone('"no such"', "error", is_wrong=True)}
    state = TurnProgress(1, 3, wrong=2, open=OpenRound(1, uses("toolu_1"), kept))
    finish = await world.resume(state, says("Never."))
    assert (finish.reason, finish.code) == ("loop_limit", "wrong_calls")


async def test_pauses_and_overflows_go_on_being_counted() -> None:
    world = await died("toolu_1", stored=True, world=World(job(pauses=2)))
    finish = await world.resume(
        TurnProgress(first=1, rounds=3, pauses=2), says("Wait.", "pause_turn")
    )
    assert (finish.state, finish.reason) == ("done", "pause_turn")


async def test_where_no_money_is_left_no_call_is_run_again() -> None:
    world = await died("toolu_1")
    world.calls.ends[1] = Refused("budget", "No more.")
    finish = await world.resume(progress("toolu_1"), says("Never."))
    assert (finish.state, finish.reason) == ("failed", "budget")
    assert world.tools.ran == []
    assert ("denied", "toolu_1") in world.tools.log


async def test_a_stop_that_came_meanwhile_ends_the_turn_with_a_valid_history() -> None:
    world = await died("toolu_1")
    switch = world.switch
    state = progress("toolu_1")

    async def stopped() -> None:
        world.switch.request("user")

    world.tools.before = stopped
    finish = await world.resume(state, says("Never."))
    assert switch is not world.switch
    assert (finish.state, finish.reason) == ("cancelled", "stopped")
    assert ("cancelled", "toolu_1") in world.tools.log
    await check_usable(world)
