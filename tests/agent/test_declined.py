"""A model declines: the turn goes on once with another one, by the record, or ends as it did."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conversations.agent.events import RoundChanged, RoundOpened
from conversations.agent.finish import build_refusal_trim
from conversations.agent.loop import Runner
from conversations.agent.ports import SearchesLimited
from conversations.agent.resume import TurnProgress
from conversations.context.policy.gauge import Report
from tests.agent import laws
from tests.agent.fakes import World, blocks, job
from tests.agent.streams import calls, ended, says, start, text

pytestmark = pytest.mark.asyncio
OTHER = "other-model"
NOTHING = [start(), *ended("refusal")]
HALF = [start(), *text(0, "First you "), *ended("refusal")]


def world(**fields: Any) -> World:
    return World(job=replace(job(), fallback=job(model=OTHER)), **fields)


def models(w: World) -> list[str]:
    return [json.loads(body)["model"] for body in w.calls.bodies]


async def test_without_another_model_a_turn_ends_and_its_exchange_is_left_out() -> None:
    w = World()
    finish = await w.run(HALF)
    assert (finish.state, finish.reason) == ("done", "refusal")
    assert [change.kind for change, _ in w.log.recorded] == ["trim"]
    assert models(w) == ["reply-model"]


@pytest.mark.parametrize(("declined", "trims"), [(NOTHING, 0), (HALF, 1)])
async def test_the_other_model_answers_the_same_messages(declined: Any, trims: int) -> None:
    w = world()
    w.log.report = Report(90_000, 10, 10, 0)
    finish = await w.run(declined, says("With pleasure."))
    assert (finish.state, finish.reason) == ("done", "end_turn")
    assert models(w) == ["reply-model", OTHER]
    first, second = (json.loads(body)["messages"] for body in w.calls.bodies)
    assert [m["content"][0]["text"] for m in second] == [m["content"][0]["text"] for m in first]
    assert len(w.log.recorded) == trims
    # What was reported for the other model says nothing about this one.
    assert w.calls.sendings[1].estimated_tokens < 1_000
    assert [ending.status for ending in w.calls.endings.values()] == ["refused", "complete"]
    await laws.check_usable(w)


async def test_pages_show_what_was_said_and_then_the_round_of_the_other_model() -> None:
    w = world()
    await w.run(HALF, says("With pleasure."))
    seen = [e for e in w.display.told if isinstance(e, RoundOpened | RoundChanged)]
    assert seen == [RoundOpened(1, 1), RoundChanged(1, 1), RoundOpened(1, 2)]
    w = world()
    await w.run(NOTHING, says("With pleasure."))
    seen = [e for e in w.display.told if isinstance(e, RoundOpened | RoundChanged)]
    assert seen == [RoundOpened(1, 1), RoundOpened(1, 1)]


@pytest.mark.parametrize("before", [False, True])
async def test_what_was_done_before_the_refusal_stays_on_record(before: bool) -> None:
    w = World(prompt="Order it")
    if before:
        await w.run(says("Which one?"))
        w.log.put("prompt", blocks("The red one"))
    await w.run(calls("toolu_1", input={"path": "order-4711.txt"}), HALF)
    assert [change.kind for change, _ in w.log.recorded] == ["trim"]
    kept = w.log.view().messages[-1]
    assert (kept.kind, kept.by, len(kept.blocks)) == ("prompt", ("trim",), 1)
    assert "look order-4711.txt" in kept.content
    assert ('answered \\"The red one\\"' in kept.content) is before
    assert "toolu_1" not in w.log.view().body
    await laws.check_usable(w)
    assert "look order-4711.txt" in w.calls.bodies[-1]


async def test_a_refused_answer_to_a_question_leaves_nothing() -> None:
    w = World()
    await w.run(says("Which one?"))
    await w.go_on("The red one", HALF)
    assert "The red one" not in w.log.view().body


async def test_what_people_decided_on_the_calls_is_on_record() -> None:
    w = World()
    state = replace(await w.log.load(), decisions=(("toolu_1", "chat"),))
    policy = state.add_decisions(w.job.policy)
    await w.run(calls("toolu_1", input={"path": "a.txt"}), says("Done."))
    change = build_refusal_trim(w.log.view(), 1, policy)
    assert "allowed by the user for this whole chat: look a.txt" in change.view_after.body


async def test_a_record_that_would_be_longer_than_the_exchange_is_not_kept() -> None:
    w = World()
    await w.run(calls("toolu_1"), says("Done."))
    policy = replace(w.job.policy, actions=(f"look={'opened the door ' * 9}",))
    view = w.log.view()
    assert build_refusal_trim(view, 1, policy).view_after.body == "[]"
    policy = replace(policy, actions=("look=opened the door",))
    assert "opened the door" in build_refusal_trim(view, 1, policy).view_after.body


@pytest.mark.parametrize("second", [NOTHING, HALF])
async def test_when_the_other_model_declines_too_the_turn_ends(second: Any) -> None:
    w = world()
    finish = await w.run(HALF, second, says("Never."))
    assert (finish.state, finish.reason) == ("done", "refusal")
    assert models(w) == ["reply-model", OTHER]
    assert w.log.view().messages == ()
    await laws.check_usable(w)


async def test_what_the_tools_found_before_is_kept_for_the_other_model() -> None:
    w = world()
    finish = await w.run(calls("toolu_1"), HALF, says("Found."))
    assert finish.reason == "end_turn"
    last = json.loads(w.calls.bodies[-1])["messages"]
    assert [m["content"][0]["type"] for m in last] == ["text", "tool_use", "tool_result"]
    laws.check_log(w)


async def test_a_veto_ends_the_turn_as_without_another_model() -> None:
    w = world()
    w.log.veto = lambda change: "Not here." if change.kind == "trim" else ""
    finish = await w.run(HALF, says("Never."))
    assert (finish.reason, models(w)) == ("refusal", ["reply-model"])
    assert {change.outcome for change, _ in w.log.recorded} == {"vetoed"}


@pytest.mark.parametrize("said", [0, 2])
async def test_a_worker_that_takes_the_turn_over_goes_on_with_the_other_model(said: int) -> None:
    w = world()
    if said:
        w.log.put("answer", blocks("First you "))
    w.model.replies[:] = [says("With pleasure.")]
    progress = TurnProgress(first=1, rounds=bool(said), declined=said)
    finish = await Runner(w.job, w.ports, 1, progress).run()
    assert finish.reason == "end_turn"
    assert models(w) == [OTHER]
    assert len(w.log.recorded) == bool(said)
    laws.check_log(w)


async def test_the_other_model_offers_fewer_searches_and_is_still_the_other_one() -> None:
    w = world()
    w.calls.refuses[2] = SearchesLimited("budget", "Used up.", searches=1)
    assert (await w.run(NOTHING, says("With pleasure."))).reason == "end_turn"
    opened = [event.is_plain for event in w.display.told if isinstance(event, RoundOpened)]
    assert opened == [True, False]
