"""Context editing and compaction by the API, as the runner requests and handles them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from conversations.agent.answer import Answer
from conversations.agent.ports import ModelFailed, Refused
from conversations.context.policy.policy import build_policy
from conversations.context.steps import api_clearing
from tests.agent.fakes import World, job
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import (
    Events,
    calls,
    closed,
    complete_block,
    delta,
    ended,
    opened,
    says,
    start,
)
from tests.agent.test_reductions import remembered

pytestmark = pytest.mark.asyncio
NUMBERS = {
    "input_token_budget": 1_500, "compaction_threshold_tokens": 100_000,
    "minimum_gain_tokens": 500, "clear_keep_results": 1, "protected_tail_messages": 2,
    "window_reserve_tokens": 1_024,
}  # fmt: skip
BLOCK = {"type": "compaction", "content": "They looked at apples.", "signature": "c2ln"}


def world(**numbers: Any) -> World:
    made = job(build_policy("native", NUMBERS | numbers))
    return World(replace(made, clears=True, compacts=True), log=remembered())


def compacted(block: dict[str, Any] | None = BLOCK, reason: str = "compaction") -> Events:
    none = {"input_tokens": 0, "output_tokens": 0}
    row = {"type": "compaction", "input_tokens": 900, "output_tokens": 50}
    found = complete_block(block) if block else []
    return [start(none), *found, *ended(reason, 0, input_tokens=0, iterations=[row])]


def clearing(uses: int, tokens: int) -> Events:
    """An answer that says what was cleared."""
    events = says("Hello.", input_tokens=2_000)
    edits = [{"type": "x", "cleared_tool_uses": uses, "cleared_input_tokens": tokens}]
    return [
        event | {"context_management": {"applied_edits": edits}}
        if event["type"] == "message_delta"
        else event
        for event in events
    ]


def kinds(world: World) -> list[tuple[str, str]]:
    return [(change.kind, change.outcome) for change, _ in world.log.recorded]


async def test_a_reply_asks_for_the_clearing_and_the_report_counts_it_in(caplog: Any) -> None:
    w = world()
    await w.run(clearing(7, 2_500), says("More."))
    sending = w.calls.sendings[0]
    assert sending.envelope.headers == {"anthropic-beta": api_clearing.EDITING}
    asked = json.loads(w.calls.bodies[0])["context_management"]["edits"][0]
    assert asked["keep"] == {"type": "tool_uses", "value": 1}
    assert kinds(w) == [("clearing", "expected")]
    assert "expected were" not in caplog.text
    # The estimate is of what the API reports and bills, after the clearing.
    assert sending.view is not None
    [(expected, _)] = w.log.recorded
    freed = expected.tokens_before - expected.tokens_after
    request = sending.view.tokens + sending.envelope.overhead
    assert sending.estimated_tokens == request - freed < request - 2_000
    await w.go_on("And now?", says("Now."))
    check_log(w)


async def test_another_clearing_than_expected_is_said_and_the_turn_goes_on(caplog: Any) -> None:
    w = world()
    finish = await w.run(clearing(2, 100))
    assert finish.state == "done"
    assert "the API cleared 2 tool results, expected were 7" in caplog.text
    none = world()
    await none.run([*says("x")[:-2], *ended("end_turn")])
    assert "the API cleared 0 tool results, expected were 7" in caplog.text


async def test_the_api_is_asked_for_a_compaction_and_its_block_goes_first() -> None:
    w = world(compaction_threshold_tokens=2_000)
    finish = await w.run(compacted(), says("Hello."))
    assert finish.state == "done"
    summary, reply = w.calls.sendings
    assert (summary.purpose, summary.view) == ("summary", None)
    assert summary.envelope.headers == {"anthropic-beta": api_clearing.COMPACTION}
    wanted = json.loads(w.calls.bodies[0])
    assert wanted["compaction"] == {"type": "summarize"}
    assert "context_management" not in wanted
    assert wanted["tools"] == json.loads(w.calls.bodies[1])["tools"][: len(wanted["tools"])]
    sent = json.loads(w.calls.bodies[1])["messages"]
    assert sent[0]["content"][0] == BLOCK
    assert len(sent) < len(wanted["messages"])
    assert "compact-2026-09-04" in reply.envelope.headers["anthropic-beta"]
    assert (w.log.recorded[0][0].kind, w.log.recorded[0][1]) == ("summary", 1)
    assert w.calls.endings[1].usage is not None
    assert w.calls.endings[1].usage.spent.input == 900
    await check_usable(w)


@pytest.mark.parametrize(
    "script",
    [
        compacted(None, "max_tokens"),
        compacted(None, "end_turn"),
        compacted(BLOCK, "end_turn"),
        compacted(BLOCK | {"content": None}),
        [ModelFailed("overloaded", "compaction_unavailable", 529)],
        [*says("Hello.")],
    ],
)
async def test_a_compaction_that_fails_is_recorded_and_the_turn_goes_on(script: Any) -> None:
    w = world(compaction_threshold_tokens=2_000)
    finish = await w.run(script, says("Hello."))
    assert finish.state == "done"
    assert ("summary", "rejected") in kinds(w)
    assert w.log.recorded[0][1] == 1
    await w.go_on("And now?", compacted(), says("Now."))
    assert ("summary", "applied") in kinds(w)
    check_log(w)


async def test_a_compaction_without_budget_is_rejected_without_a_call() -> None:
    w = world(compaction_threshold_tokens=2_000)
    w.calls.refuses[1] = Refused("budget", "No money.")
    finish = await w.run(says("Hello."))
    assert finish.state == "done"
    assert (w.log.recorded[0][0].outcome, w.log.recorded[0][1]) == ("rejected", None)


async def test_a_block_that_the_api_refuses_is_put_in_words() -> None:
    w = world(compaction_threshold_tokens=2_000)
    refused = ModelFailed("signature", "The block's signature is not accepted.", 400)
    finish = await w.run(compacted(), [refused], says("Hello."))
    assert finish.state == "done"
    assert kinds(w)[:1] == [("summary", "applied")]
    last = json.loads(w.calls.bodies[-1])["messages"]
    assert "They looked at apples." in last[0]["content"][0]["text"]
    assert "compact" not in w.calls.sendings[-1].envelope.headers.get("anthropic-beta", "")
    await check_usable(w)


async def test_a_compaction_block_is_kept_as_it_came() -> None:
    answer = Answer()
    block = BLOCK | {"content": None, "tool_changes": [{"type": "tool_removal"}], "extra": None}
    for event in [
        start(), opened(0, block), delta(0, type="compaction_delta", content="In one go."),
        delta(0, type="compaction_delta", content=None, signature="bmV3"),
    ]:  # fmt: skip
        answer.feed(event)
    assert answer.compaction == ""
    answer.feed(closed(0))
    assert json.loads(answer.compaction) == {
        "type": "compaction",
        "content": "In one go.",
        "tool_changes": [{"type": "tool_removal"}],
        "signature": "bmV3",
    }
    # In an ordinary answer it is nothing that could be sent back.
    assert answer.blocks == ()
    plain = Answer()
    for event in says("Hello."):
        plain.feed(event)
    assert (plain.compaction, Answer().compaction) == ("", "")


async def test_a_tool_round_goes_on_behind_a_block() -> None:
    w = world(compaction_threshold_tokens=2_000)
    finish = await w.run(compacted(), calls("toolu_1"), says("Seen."))
    assert finish.state == "done"
    check_log(w)
