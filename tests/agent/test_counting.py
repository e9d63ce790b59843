"""A request whose estimate is near the window is counted before it is sent or given up."""

from __future__ import annotations

import json

import pytest

from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import build_policy
from tests.agent.fakes import FakeLog, World, blocks, job
from tests.agent.laws import check_log
from tests.agent.streams import says

pytestmark = pytest.mark.asyncio
OFF, TRIM = build_policy("off"), build_policy("gated-trim", {"max_conversation_tokens": 10_000_000})


def near(policy: str = "off", percent: int = 100) -> World:
    """A conversation whose estimate is so many percent of what its model takes."""
    log = FakeLog()
    for number in range(20):
        log.put("prompt", blocks(f"please look at number {number}, " + "and again " * 500))
        log.put("answer", blocks("I saw it. " * 40))
    chosen = OFF if policy == "off" else TRIM
    tokens = log.view().tokens + job().envelope.overhead
    # A fifth of a small window is kept for the answer.
    return World(job(chosen, tokens * 125 // percent), log=log)


async def test_what_is_counted_is_what_is_sent() -> None:
    w = near()
    w.model.counts = [12_000]
    finish = await w.run(says("Hi"))
    assert finish.reason == "end_turn"
    counted, sent = json.loads(w.model.counted[0]), json.loads(w.calls.bodies[0])
    assert {name for name in sent if name not in counted} == {"max_tokens", "stream"}
    assert all(sent[name] == value for name, value in counted.items())
    assert len(w.model.counted) == 1
    assert w.calls.sendings[0].estimated_tokens == 12_000
    check_log(w)


async def test_a_turn_that_an_estimate_would_end_goes_on_when_the_count_allows() -> None:
    for counts, reason in (([20_000], "end_turn"), ([None], ""), ([10**6], "")):
        w = near(percent=108)
        w.model.counts = list(counts)
        finish = await w.run(says("Hi"))
        assert finish.reason == (reason or "context")
        assert finish.code == ("" if reason else "context_full")
        assert len(w.model.counted) == 1


async def test_the_record_says_that_the_figure_was_counted() -> None:
    w = near("trim", 95)
    w.model.counts = [10**6, 15_000]
    finish = await w.run(says("Hi"))
    assert finish.reason == "end_turn"
    triggers = [change.trigger for change, _ in w.log.recorded]
    assert (triggers[0].number, triggers[0].source) == (10**6, "counted")
    check_log(w)


async def test_nothing_is_counted_far_from_the_limit_or_after_a_report() -> None:
    far = near(percent=80)
    await far.run(says("Hi"))
    assert far.model.counted == []
    told = near(percent=99)
    view = told.log.view()
    overhead = told.job.envelope.overhead
    told.log.report = Report(view.tokens + overhead, view.tokens, overhead, view.edits)
    await told.run(says("Hi"))
    assert told.model.counted == []


async def test_a_stop_ends_the_turn_while_a_request_is_counted() -> None:
    w = near()

    async def count(*_: object) -> None:
        await w.stop_and_wait()

    w.model.count = count
    finish = await w.run(says("Hi"))
    assert (finish.state, finish.reason) == ("cancelled", "stopped")
    assert w.calls.sendings == []


async def test_an_answer_is_allowed_no_more_than_is_left_of_the_window() -> None:
    log = FakeLog()
    log.put("prompt", blocks("please " * 4_000))
    log.put("answer", blocks("Done."))
    estimate = log.view().tokens
    w = World(job(OFF, window=16_000), log=log)
    w.log.report = Report(12_000, estimate, 0, 0)
    made = w.job.envelope
    limited = made.with_limit(9_000)
    w.job = job(OFF, window=16_000, max_output=64_000)
    object.__setattr__(w.job, "envelope", limited)
    await w.run(says("Hi"))
    sent = w.calls.sendings[0]
    assert sent.envelope.max_tokens == 3_072
    assert sent.estimated_tokens + sent.envelope.max_tokens <= 16_000
    assert sent.envelope.binding == made.binding
