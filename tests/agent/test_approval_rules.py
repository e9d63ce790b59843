"""A call that needs approval waits; the other calls of its answer run; nothing runs twice."""

from __future__ import annotations

import pytest

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion, CallFacts, find_question
from conversations.agent.ports import ToolDone
from conversations.agent.resume import OpenRound, TurnProgress
from conversations.agent.tool_calls import CANCELLED
from conversations.context.view import wire
from tests.agent.fakes import World, job
from tests.agent.laws import check_usable
from tests.agent.streams import calls, says
from tests.agent.test_tools import results

USE = ToolUse("toolu_1", "send", '{"to":"a@b"}')
READ = CallFacts(private=("read_mail",))


# The rule.


def test_what_changes_something_asks() -> None:
    found = find_question(USE, CallFacts(), writes=True, destination=None)
    assert found == ApprovalQuestion(USE, "write")
    assert find_question(USE, READ, writes=True, destination="mail:a@b") == ApprovalQuestion(
        USE, "write", "mail:a@b", ("read_mail",)
    )


def test_what_changes_nothing_and_tells_nobody_does_not_ask() -> None:
    assert find_question(USE, READ, writes=False, destination=None) is None


def test_telling_others_asks_only_after_private_data_was_read() -> None:
    assert find_question(USE, CallFacts(), writes=False, destination="evil:443") is None
    found = find_question(USE, READ, writes=False, destination="evil:443")
    assert found == ApprovalQuestion(USE, "private", "evil:443", ("read_mail",))


def test_a_destination_in_the_persons_own_words_does_not_ask() -> None:
    known = CallFacts(("read_mail",), frozenset({"good:443"}))
    assert find_question(USE, known, writes=False, destination="GOOD:443") is None
    assert find_question(USE, known, writes=False, destination="evil:443") is not None
    # A name lets nothing be changed.
    assert find_question(USE, known, writes=True, destination="good:443") is not None


@pytest.mark.parametrize("destination", [None, "mail:a@b"])
def test_what_was_allowed_for_the_conversation_does_not_ask(destination: str | None) -> None:
    known = CallFacts(("read_mail",), allowed=frozenset({("send", destination or "")}))
    assert find_question(USE, known, writes=True, destination=destination) is None
    other = ToolUse("toolu_2", "other", "{}")
    assert find_question(other, known, writes=True, destination=destination) is not None
    assert find_question(USE, known, writes=True, destination="mail:eve@b") is not None


def test_the_site_may_allow_a_tool_for_good() -> None:
    assert find_question(USE, READ, writes=True, destination="evil:443", rule="allow") is None


def test_the_site_may_have_every_call_of_a_tool_asked_about() -> None:
    def judged(known: CallFacts, destination: str | None) -> ApprovalQuestion | None:
        return find_question(USE, known, writes=False, destination=destination, rule="ask")

    assert judged(CallFacts(), None) == ApprovalQuestion(USE, "rule")
    named = CallFacts(("read_mail",), frozenset({"good:443"}))
    by_rule = ApprovalQuestion(USE, "rule", "good:443", ("read_mail",))
    assert judged(named, "good:443") == by_rule
    assert judged(CallFacts(), "good:443") == ApprovalQuestion(USE, "rule", "good:443")
    # What says more is said first.
    assert judged(READ, "evil:443") == ApprovalQuestion(USE, "private", "evil:443", ("read_mail",))
    allowed = CallFacts(allowed=frozenset({("send", "")}))
    assert judged(allowed, None) is None


# The turn.

QUESTION = ApprovalQuestion(ToolUse("toolu_2", "look", "{}"), "write")


async def waiting(**caps: int) -> World:
    """Give a world whose turn waits for the second of its three calls."""
    world = World(job(**caps))
    world.tools.verdicts["toolu_2"] = QUESTION
    finish = await world.run(calls("toolu_1", "toolu_2", "toolu_3"))
    assert finish.state == "approval_wait"
    return world


def decided(world: World) -> TurnProgress:
    """Give the turn as the next worker finds it."""
    done = {name: ToolDone(wire.encode("seen {}"), "ok") for name in ("toolu_1", "toolu_3")}
    names = ("toolu_1", "toolu_2", "toolu_3")
    uses = tuple(ToolUse(name, "look", "{}") for name in names)
    world.tools.log.clear()
    world.tools.ran.clear()
    return TurnProgress(1, 1, ids=frozenset(names), open=OpenRound(1, uses, done))


@pytest.mark.asyncio
async def test_a_call_that_asks_waits_after_all_others_have_run() -> None:
    world = await waiting()
    assert world.tools.asked == [QUESTION]
    assert [name for name, _ in world.tools.ran] == ["toolu_1", "toolu_3"]
    assert ("ok", "toolu_3") in world.tools.log
    assert [kind for kind, _ in world.log.messages] == ["prompt", "answer"]


@pytest.mark.asyncio
async def test_a_call_that_was_allowed_runs_and_the_turn_goes_on() -> None:
    world = await waiting()
    state = decided(world)
    world.tools.verdicts.clear()
    finish = await world.resume(state, says("Done."))
    assert finish.reason == "end_turn"
    assert [name for name, _ in world.tools.ran] == ["toolu_2"]
    await check_usable(world)


@pytest.mark.asyncio
async def test_a_call_that_was_denied_is_an_error_in_plain_words_and_the_model_goes_on() -> None:
    world = await waiting()
    state = decided(world)
    world.tools.verdicts["toolu_2"] = ToolDone(wire.encode("They said no."), "denied")
    finish = await world.resume(state, says("As you wish."))
    assert finish.reason == "end_turn"
    assert world.tools.ran == []
    assert world.tools.log == [("denied", "toolu_2")]
    second = results(world)[1]
    assert (second["content"], second["is_error"]) == ("They said no.", True)
    await check_usable(world)


@pytest.mark.asyncio
async def test_a_stop_while_the_others_run_asks_nobody() -> None:
    world = World()
    world.tools.verdicts["toolu_2"] = QUESTION

    async def stopping(_: object) -> ToolDone:
        world.switch.request("user")
        return ToolDone('"done"', "ok")

    world.tools.run_by_name["look"] = stopping
    finish = await world.run(calls("toolu_1", "toolu_2"))
    assert (finish.state, finish.reason) == ("cancelled", "stopped")
    assert world.tools.asked == []
    await check_usable(world)


@pytest.mark.asyncio
async def test_a_stop_before_the_calls_cancels_what_would_ask() -> None:
    world = World(job(parallel_tools=1))
    world.tools.verdicts["toolu_1"] = QUESTION

    async def stopped() -> None:
        world.switch.request("user")

    world.tools.before = stopped
    finish = await world.run(calls("toolu_1"))
    assert (finish.state, finish.reason) == ("cancelled", "stopped")
    assert world.tools.asked == []
    assert results(world)[0]["content"] == CANCELLED


@pytest.mark.asyncio
async def test_calls_beyond_the_cap_are_not_asked_about() -> None:
    world = World(job(tool_calls=1))
    world.tools.verdicts["toolu_2"] = QUESTION
    finish = await world.run(calls("toolu_1", "toolu_2"))
    assert (finish.state, finish.reason) == ("done", "loop_limit")
    assert world.tools.asked == []
