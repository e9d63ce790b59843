from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conversations.agent.events import RoundOpened
from conversations.agent.ports import ModelFailed, Refused, SearchesLimited, ToolDone
from conversations.agent.stop import Stopped
from conversations.context.policy.policy import Policy, build_policy
from conversations.context.view import wire
from conversations.context.view.edits import Transformation
from conversations.context.view.envelope import build_envelope
from tests.agent.fakes import REPLY, FakeLog, Script, World, blocks, job
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import calls, ended, says, start, text, thought, use

pytestmark = pytest.mark.asyncio
OVERFLOW = ModelFailed("overflow", "prompt is too long", 400)
#: Every threshold low enough to act on a small conversation.
SMALL = build_policy(
    "classic",
    {
        "input_token_budget": 900,
        "compaction_threshold_tokens": 1_000,
        "protected_tail_messages": 2,
        "summary_max_tokens": 256,
        "window_reserve_tokens": 1_024,
    },
)


def remembered(exchanges: int = 8, size: int = 60) -> FakeLog:
    """A conversation with a tool result in every exchange."""
    log = FakeLog()
    for number in range(exchanges):
        call = {"type": "tool_use", "id": f"old_{number}", "name": "look", "input": {"n": number}}
        words = f"result {number} of the search for apples " * size
        result = {"type": "tool_result", "tool_use_id": f"old_{number}", "content": words}
        log.put("prompt", blocks(f"please look at number {number} " * 5))
        log.put("answer", wire.encode([call]))
        log.put("results", wire.encode([result]))
        log.put("answer", blocks(f"I saw number {number} and it was an apple " * 8))
    return log


def world(policy: Policy = SMALL, log: FakeLog | None = None, **caps: Any) -> World:
    return World(job(policy, **caps), log=log or remembered())


def kinds(world: World) -> list[tuple[str, str]]:
    return [(change.kind, change.outcome) for change, _ in world.log.recorded]


def summary_of(world: World) -> Script:
    """An honest summary: whatever names the request wants kept are in it."""

    async def nothing() -> None:
        return None

    class Honest(list[Any]):
        def __iter__(self) -> Any:
            asked = json.loads(world.calls.bodies[-1])["messages"][0]["content"][0]["text"]
            return iter(says("The user looked at apples. " + asked[-1_500:]))

    return Honest([nothing])


async def test_a_reduction_is_recorded_once_and_what_is_sent_is_rebuilt_from_the_log() -> None:
    w = world(build_policy("classic", {"input_token_budget": 900, "compaction_enabled": False}))
    before = w.log.view().size
    finish = await w.run(says("Hi"))
    assert finish.reason == "end_turn"
    assert kinds(w) == [("compaction", "applied")]
    assert len(w.calls.bodies[0]) < before
    await check_usable(w)
    # What was recorded is not proposed again.
    assert kinds(w) == [("compaction", "applied")]


async def test_only_a_summary_carries_the_call_that_wrote_it() -> None:
    w = world()
    w.model.summaries = [summary_of(w), summary_of(w)]
    await w.run(says("Hi"))
    assert {change.kind for change, _ in w.log.recorded} >= {"compaction", "summary"}
    for change, call in w.log.recorded:
        assert (call is not None) == (change.kind == "summary")
    purposes = {n + 1: s.purpose for n, s in enumerate(w.calls.sendings)}
    assert {purposes[call] for _, call in w.log.recorded if call} == {"summary"}
    assert ("summary", "applied") in kinds(w)
    assert "[CONTEXT SUMMARY]" in w.calls.bodies[-1]
    await check_usable(w)


async def test_a_summary_call_shows_nothing_stores_nothing_and_is_billed() -> None:
    w = world()
    w.model.summaries = [summary_of(w), summary_of(w)]
    await w.run(says("Hi"))
    assert w.display.text == "Hi"
    ending = w.calls.endings[1]
    assert w.calls.sendings[0].purpose == "summary"
    assert (ending.status, ending.blocks, ending.tools) == ("complete", (), ())
    assert ending.usage is not None
    assert w.calls.sendings[0].view is None


@pytest.mark.parametrize(
    "script",
    [
        [ModelFailed("overloaded", "Busy.", 529, may_retry=True)],
        [OVERFLOW],
        [start(), *text(0, "The user")[:-1]],
        [start(), {"type": "content_block_stop", "index": 3}],
        [start(), *ended("end_turn")],
        [start(), *ended("refusal")],
        says("Too short, cut", "max_tokens"),
        calls("toolu_1"),
        [start(), *use(0, "old_1"), *ended("tool_use")],
        says("apples " * 9_000),
    ],
)
async def test_a_summary_that_fails_never_fails_the_turn(script: Script) -> None:
    w = world()
    w.model.summaries = [script, list(script)]
    finish = await w.run(says("Hi"))
    assert finish.reason == "end_turn"
    assert w.tools.ran == []
    assert ("summary", "rejected") in kinds(w)
    assert w.log.rejected == 1
    w.model.summaries = [list(script), list(script)]
    await check_usable(w)


async def test_a_summary_that_the_budget_refuses_never_fails_the_turn() -> None:
    w = world()
    w.calls.refuses[1] = Refused("budget", "Used up.")
    finish = await w.run(says("Hi"))
    assert finish.reason == "end_turn"
    assert [s.purpose for s in w.calls.sendings] == ["reply"]
    assert [call for change, call in w.log.recorded if change.kind == "summary"] == [None]
    check_log(w)


async def test_a_summary_is_asked_for_with_fewer_searches_where_only_those_fit() -> None:
    w = world()
    w.calls.refuses[1] = SearchesLimited("budget", "Used up.", searches=1)
    w.model.summaries = [summary_of(w), summary_of(w)]
    await w.run(says("Hi"))
    assert ("summary", "applied") in kinds(w)
    await check_usable(w)


async def test_after_some_rejected_summaries_none_is_asked_for() -> None:
    w = world(build_policy("classic", {**_small(), "summary_breaker": 2}))
    failing: Script = [ModelFailed("upstream", "No.", 500)]
    w.model.summaries = [failing] * 9
    full = start({"input_tokens": 9_000, "output_tokens": 1})
    long = {"q": "word " * 4_000}
    rounds = [[full, *use(0, f"toolu_{n}", input=long), *ended("tool_use")] for n in range(4)]
    await w.run(*rounds, says("Hi"))
    assert [s.purpose for s in w.calls.sendings].count("summary") == 2
    assert w.log.rejected == 2
    assert (await w.log.load()).rejected == 2
    check_log(w)


def _small() -> dict[str, Any]:
    names = ("input_token_budget", "compaction_threshold_tokens", "protected_tail_messages")
    return {name: getattr(SMALL, name) for name in (*names, "summary_max_tokens")}


@pytest.mark.parametrize("kind", ["compaction", "summary"])
async def test_a_veto_is_respected_and_recorded(kind: str) -> None:
    w = world()
    w.log.veto = lambda change: "not today" if change.kind == kind else ""
    w.model.summaries = [summary_of(w), summary_of(w)]
    finish = await w.run(says("Hi"))
    assert finish.reason == "end_turn"
    assert (kind, "vetoed") in kinds(w)
    assert (kind, "applied") not in kinds(w)
    vetoed = next(change for change, _ in w.log.recorded if change.outcome == "vetoed")
    assert (vetoed.edits, vetoed.reason) == ((), "not today")
    check_log(w)


async def test_a_veto_of_leaving_out_a_declined_exchange_is_recorded() -> None:
    w = World()
    w.log.veto = lambda change: "keep it"
    await w.run([start(), *ended("refusal")])
    assert kinds(w) == [("trim", "vetoed")]
    assert "Hello" in w.log.view().body


async def test_a_call_that_was_cut_is_requested_once_more_with_a_higher_limit() -> None:
    w = World(job(max_output=64_000))
    cut = [start(), *use(0, "toolu_1", input={"to": "x"}), *ended("max_tokens")]
    finish = await w.run(cut, says("Shorter."))
    assert finish.reason == "end_turn"
    assert [one.envelope.max_tokens for one in w.calls.sendings] == [1_000, 4_000]


async def test_a_stop_during_a_summary_ends_the_turn_without_one() -> None:
    w = world()
    w.model.summaries = [[start(), *text(0, "The user")[:-1], w.stop_and_wait]]
    finish = await w.run()
    assert (finish.state, finish.reason) == ("cancelled", "stopped")
    assert w.calls.endings[1].status == "stopped"
    assert w.calls.endings[1].blocks == ()
    assert not any(kind == "summary" for kind, _ in kinds(w))
    check_log(w)


async def test_a_lease_lost_while_recording_interrupts_the_turn() -> None:
    w = world()

    def lost(_: Transformation) -> str:
        raise Stopped("lease")

    w.log.veto = lost
    finish = await w.run()
    assert (finish.state, finish.reason) == ("interrupted", "lease")
    assert w.calls.bodies == []


async def test_an_overflow_reduces_harder_each_time_and_asks_again() -> None:
    w = world(build_policy("classic"), remembered(10, 150), overflows=3)
    w.model.summaries = [[ModelFailed("upstream", "No.", 500)]] * 9
    finish = await w.run([OVERFLOW], [OVERFLOW], [OVERFLOW], says("Hi"))
    assert finish.reason == "end_turn"
    sizes = [
        len(sent)
        for sent, sending in zip(w.calls.bodies, w.calls.sendings, strict=True)
        if sending.purpose == "reply"
    ]
    assert len(sizes) == 4
    assert sizes == sorted(set(sizes), reverse=True)
    await check_usable(w)


async def test_overflows_are_bounded_and_end_the_turn_for_the_context() -> None:
    w = world(build_policy("classic"), remembered(10, 150), overflows=1)
    w.model.summaries = [[ModelFailed("upstream", "No.", 500)]] * 9
    finish = await w.run([OVERFLOW], [OVERFLOW], says("Never."))
    assert (finish.state, finish.reason, finish.code) == ("failed", "context", "overflow")
    await check_usable(w)


async def test_a_request_that_could_not_be_made_smaller_is_not_sent_a_second_time() -> None:
    w = World(job(build_policy("classic"), overflows=2))
    finish = await w.run([OVERFLOW], says("Never."))
    assert (finish.state, finish.reason, finish.code) == ("failed", "context", "overflow")
    assert len(w.calls.bodies) == 1
    await check_usable(w)


async def test_when_nothing_can_be_reduced_an_overflow_ends_the_turn_for_the_context() -> None:
    w = World()
    finish = await w.run([OVERFLOW])
    assert (finish.state, finish.reason, finish.code) == ("failed", "context", "context_full")
    assert len(w.calls.bodies) == 1
    await check_usable(w)


async def test_thinking_signed_under_another_envelope_is_dropped_and_recorded() -> None:
    w = World(job(build_policy("classic")))
    await w.run([start(), *thought(0), *text(1, "So."), *ended("end_turn")])
    w.log.bound_to = "sha256:another"
    await w.go_on("More", says("Hi"))
    assert kinds(w) == [("rebind", "applied")]
    assert '"thinking"' not in w.calls.bodies[1]
    check_log(w)


async def test_the_thinking_of_a_turn_is_bound_to_the_envelope_that_was_sent() -> None:
    policy = build_policy("classic", {"input_token_budget": 600, "compaction_enabled": False})
    w = world(policy, remembered(3))
    round_one = [start(), *thought(0), *use(1, "toolu_1"), *ended("tool_use")]
    await w.run(round_one, says("Hi"))
    assert '"thinking"' in w.calls.bodies[1]
    assert ("rebind", "applied") not in kinds(w)
    check_log(w)


async def test_a_large_result_is_shortened_before_it_is_first_sent() -> None:
    w = World(job(build_policy("classic", {"max_tool_result_chars": 1_000})))

    async def long(_: Any) -> ToolDone:
        return ToolDone(wire.encode("word " * 5_000), "ok")

    w.tools.run_by_name["look"] = long
    await w.run(calls("toolu_1"), says("Hi"))
    assert kinds(w) == [("ingest", "applied")]
    assert len(w.calls.bodies[1]) < 5_000
    kept = w.log.messages[2][1][0]["content"]
    assert kept == "word " * 5_000
    await check_usable(w)


async def test_thinking_whose_signature_the_api_refuses_is_dropped_once_and_asked_again() -> None:
    refused = ModelFailed("signature", "Invalid signature", 400)
    w = World()
    await w.run([start(), *thought(0), *text(1, "So."), *ended("end_turn")])
    finish = await w.go_on("More", [refused], says("Hi"))
    assert finish.reason == "end_turn"
    assert kinds(w) == [("rebind", "applied")]
    assert '"thinking"' in w.calls.bodies[1]
    assert '"thinking"' not in w.calls.bodies[2]
    await check_usable(w)


async def test_a_signature_refused_again_ends_the_turn() -> None:
    refused = ModelFailed("signature", "Invalid signature", 400)
    w = World()
    finish = await w.run([refused], [refused], says("Never."))
    assert (finish.state, finish.code) == ("failed", "signature")
    assert len(w.calls.bodies) == 2
    await check_usable(w)


async def test_fewer_searches_are_offered_for_the_rest_of_a_turn_and_nothing_is_refused() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    plain = job()
    tools = build_envelope(model=REPLY, max_tokens=1_000, system="Be brief.", tools=[search])
    w = World(replace(plain, envelope=tools))
    w.calls.refuses[2] = SearchesLimited("budget", "Used up.", searches=1)
    round_one = [start(), *thought(0), *use(1, "toolu_1"), *ended("tool_use")]
    finish = await w.run(round_one, calls("toolu_2"), says("Done."))
    assert finish.reason == "end_turn"
    assert [row.envelope.searches for row in w.calls.sendings] == [5, 1, 1]
    # What was signed over the tools of before is left out, on record, before the API sees it.
    assert kinds(w) == [("rebind", "applied")]
    assert '"thinking"' not in w.calls.bodies[1]
    opened = [event.is_plain for event in w.display.told if isinstance(event, RoundOpened)]
    assert opened == [True] * 3
    await check_usable(w)
