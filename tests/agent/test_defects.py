"""Defects of the agent loops this one replaces, each a law of the runner.

The engine's part of them is in tests/context/test_defects.py; tests/test_defects.py lists all.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from conversations.agent.ports import ModelFailed, ToolDone
from conversations.context.policy.policy import Policy, build_policy
from conversations.context.view import wire
from tests.agent.fakes import FakeLog, World, blocks, job
from tests.agent.laws import check_log, check_usable
from tests.agent.streams import ended, says, start, text, use

pytestmark = pytest.mark.asyncio
PAGE = "some words of a page that was fetched " * 80
BUDGET = build_policy("tool-budget", {"input_token_budget": 2_000})


async def fetch(given: Any) -> ToolDone:
    await asyncio.sleep(0)
    return ToolDone(wire.encode(f"page {given['n']}: {PAGE}"), "ok")


def fetching(policy: Policy, log: FakeLog | None = None, **of_job: Any) -> World:
    world = World(job(policy, **of_job), log=log or FakeLog())
    world.tools.run_by_name["look"] = fetch
    return world


def rounds(count: int, first: int = 0, **usage: Any) -> list[Any]:
    """Answers that each ask for one page, and a last one that asks for none."""
    asking = [
        [start(), *use(0, f"toolu_{n}", input={"n": n}), *ended("tool_use", **usage)]
        for n in range(first, first + count)
    ]
    return [*asking, says("Done.", **usage)]


def messages(body: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(body)["messages"]
    return found


def results(body: str) -> dict[str, str]:
    """Give the tool results of a request by their ids."""
    return {
        block["tool_use_id"]: str(block["content"])
        for message in messages(body)
        for block in message["content"]
        if block["type"] == "tool_result"
    }


def shortened(found: dict[str, str]) -> set[str]:
    return {name for name, content in found.items() if "truncated for context" in content}


async def test_a_turn_that_compacts_sends_the_compacted_list_from_then_on() -> None:
    world = fetching(BUDGET)
    await world.run(*rounds(8, input_tokens=3_000))
    check_log(world)
    sent = list(map(results, world.calls.bodies))
    assert len(sent) == 9
    for at, found in enumerate(sent):
        # Once a result was sent short, no later request of the turn has it whole again.
        assert all(shortened(found) <= shortened(later) for later in sent[at:])
    assert len(shortened(sent[-1])) == 7


async def test_every_result_of_a_turn_is_sent_whole_in_the_very_next_request() -> None:
    world = fetching(BUDGET)
    await world.run(*rounds(8, input_tokens=3_000))
    for at, body in enumerate(world.calls.bodies):
        assert list(results(body)) == [f"toolu_{n}" for n in range(at)]
        if at:
            assert results(body)[f"toolu_{at - 1}"] == f"page {at - 1}: {PAGE}"


async def test_the_trigger_counts_what_the_cache_holds_and_the_last_call_alone() -> None:
    cached = {"cache_read_input_tokens": 1_200, "cache_creation_input_tokens": 500}
    world = fetching(build_policy("tool-budget", {"input_token_budget": 6_000}))
    await world.run(*rounds(6, input_tokens=10, **cached))
    estimates = [sending.estimated_tokens for sending in world.calls.sendings]
    # Each figure is that of one call (1,717 with its output) and what was appended since: calls
    # summed up would have passed the budget in the fourth round.
    assert all(1_700 < estimate < 6_000 for estimate in estimates[1:])
    assert world.log.recorded == []
    tight = fetching(build_policy("tool-budget", {"input_token_budget": 1_700}))
    await tight.run(*rounds(3, input_tokens=10, **cached))
    assert {change.kind for change, _ in tight.log.recorded} == {"compaction"}


@pytest.mark.parametrize(
    "script",
    [
        [ModelFailed("overloaded", "Busy.", 529)],
        [ModelFailed("overflow", "prompt is too long", 400)],
        [start(), *text(0, "Half a su")[:-1]],
        [start(), *ended("refusal")],
        says("", "end_turn"),
    ],
)
async def test_a_failed_summary_locks_no_conversation(script: Any) -> None:
    log = FakeLog()
    for number in range(8):
        log.put("prompt", blocks(f"tell me of apple {number} " * 20))
        log.put("answer", blocks(f"apple {number} is an apple like all of them " * 20))
    policy = build_policy(
        "rebuild", {"compaction_threshold_tokens": 1_000, "summary_max_tokens": 256}
    )
    world = fetching(policy, log)
    world.model.summaries = [script] * 20
    for turn in range(6):
        finish = await world.go_on(f"question {turn}", says("An answer."))
        assert (finish.state, finish.reason) == ("done", "end_turn")
    assert {change.outcome for change, _ in world.log.recorded} == {"rejected"}
    # The breaker: it is not paid for again and again.
    assert len(world.log.recorded) == 3
    await check_usable(world)


async def test_the_cached_prefix_is_not_broken_turn_after_turn() -> None:
    policies = {
        "adaptive": build_policy("adaptive", {"compaction_enabled": False}),
        "gated-trim": build_policy("gated-trim", {"max_conversation_bytes": 60_000}),
    }
    for policy in policies.values():
        world = fetching(policy, window=32_000)
        bodies: list[str] = []
        for turn in range(30):
            await world.go_on(f"question {turn}", *rounds(1, first=turn))
            bodies += world.calls.bodies
            world.calls.bodies.clear()
            world.calls.sendings.clear()
            world.calls.tips.clear()
            world.calls.endings.clear()
        prefixes = [json.dumps(messages(body))[:-1] for body in bodies]
        broken = [at for at in range(1, 60) if not prefixes[at].startswith(prefixes[at - 1])]
        assert 0 < len(broken) <= 8


async def test_a_window_of_a_million_is_used_and_a_smaller_one_is_checked_again() -> None:
    log = FakeLog()
    for number in range(160):
        log.put("prompt", blocks(f"question {number}"))
        log.put("answer", blocks(f"answer {number}: {PAGE}"))
    wide = fetching(
        build_policy("gated-trim", {"max_conversation_bytes": 0}), log, window=1_000_000
    )
    await wide.go_on("And now?", says("Now this."))
    assert wide.log.recorded == []
    assert wide.calls.sendings[-1].estimated_tokens > 60_000
    for window in (200_000, 64_000, 20_000):
        narrow = World(job(wide.job.policy, window=window), log=log)
        await narrow.go_on("And here?", says("Here this."))
        assert narrow.calls.sendings[-1].estimated_tokens <= narrow.job.policy.room(window)
        check_log(narrow)
    assert {change.kind for change, _ in log.recorded} == {"trim"}
