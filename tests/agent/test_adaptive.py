"""What the runner passes to the engine about money, time and pins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conversations.context.policy.policy import PRESETS, build_policy
from conversations.context.view.cost_decision import Rates
from tests.agent.fakes import FakeLog, World, job
from tests.agent.streams import calls, says
from tests.agent.test_reductions import remembered

pytestmark = pytest.mark.asyncio
RATES = Rates(2_000_000, 10_000_000, 2_500_000, 100_000)
POLICY = build_policy(
    "adaptive",
    {
        "low_water_tokens": 2_000,
        "minimum_gain_tokens": 500,
        "compaction_enabled": False,
        "keep_below_tokens": 0,
    },
)


def world(log: FakeLog, now: float, rates: Rates = RATES) -> World:
    return World(replace(job(POLICY), rates=rates), log=log, now=now)


async def test_a_cold_prompt_cache_is_a_time_to_reduce_and_the_record_says_so() -> None:
    w = world(remembered(10, 150), now=1_000.0)
    w.log.called_at = 400.0
    await w.run(says("Done."))
    [(change, _)] = w.log.recorded
    assert change.decision is not None
    assert (change.decision.why, change.decision.cost) == ("cold", 0)
    assert change.decision.saved_tokens > 0
    assert change.decision.saved_each > 0


async def test_a_warm_prompt_cache_is_kept_where_rewriting_would_not_pay() -> None:
    for read, acts in ((100_000, True), (10_000, False)):
        w = world(remembered(10, 150), 1_000.0, replace(RATES, cache_read=read))
        w.log.called_at = 990.0
        await w.run(says("Done."))
        assert [change.decision.why for change, _ in w.log.recorded if change.decision] == (
            ["pays"] if acts else []
        )


async def test_what_a_person_changed_is_written_for_five_minutes_and_only_once() -> None:
    rates = replace(RATES, cache_write_1h=4_000_000)
    for edited, lifetimes in ((None, ["1h", "5m"]), (0, ["5m", "1h"])):
        w = world(remembered(10, 150), 1_000.0, rates)
        w.job = replace(w.job, policy=PRESETS["off"])
        w.log.called_at, w.log.edited_from = 990.0, edited
        await w.run(calls("t1"), says("Done."))
        assert [one.envelope.lifetime for one in w.calls.sendings] == lifetimes


async def test_what_is_pinned_is_left_alone() -> None:
    w = world(remembered(10, 150), now=1_000.0)
    w.log.pinned = frozenset({"old_0", "old_3"})
    await w.run(says("Done."))
    assert w.log.recorded
    body = w.calls.bodies[-1]
    assert body.count("result 0 of the search for apples") == 150
    assert body.count("result 1 of the search for apples") < 150
