"""The simulation of the API's own edits: the view after clearing, and its bill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conversations.context.policy.policy import PRESETS
from conversations.context.view.searched_originals import list_shown_ids
from conversations.lab.legality import LegalityCheck
from conversations.lab.replayer import Replayer, Step
from conversations.lab.report import simulate_record
from conversations.lab.summarizer import fail_summary
from tests.lab.samples import record, user, world
from tests.lab.test_simulation import record_with_fact

NATIVE = replace(
    PRESETS["native"], input_token_budget=20_000, compaction_threshold_tokens=10_000_000,
    minimum_gain_tokens=2_000, clear_keep_results=1,
)  # fmt: skip


def played(rounds: int, **fields: Any) -> list[Step]:
    made = world(NATIVE, clears=True, compacts=True)
    return list(Replayer(record_with_fact(rounds), replace(made, **fields)).steps())


def test_a_request_is_billed_after_the_clearing_and_gauged_before_it() -> None:
    steps = played(24)
    assert all(not step.violations for step in steps)
    last = steps[-1]
    assert last.prepared is not None
    assert last.usage is not None
    assert last.usage.context < 20_000 < last.prepared.gauge.tokens
    # What is cleared stays the same for many calls, so that the prefix is read from the cache.
    cleared = [step.prepared.cleared for step in steps if step.prepared]
    assert len(set(cleared)) < 8
    kept = [step for step in steps[3:] if step.keeps_prefix]
    assert len(kept) * 3 > len(steps) * 2
    assert all(step.usage and step.usage.cache_read > 0 for step in kept)
    assert last.messages != last.seen.body
    assert "Old tool result cleared" in last.seen.body


def test_what_was_cleared_is_no_original_that_the_request_shows() -> None:
    steps = [step for step in played(24) if step.prepared and step.prepared.cleared]
    assert len(steps) > 5
    for step in steps:
        shown, gone = list_shown_ids(step.seen), step.prepared and step.prepared.cleared
        assert shown
        assert shown.isdisjoint(gone or ())


def test_what_was_cleared_is_not_in_view_and_can_be_recalled() -> None:
    talk = record_with_fact(16)
    found = simulate_record(talk, world(NATIVE, clears=True))
    assert (found.sole.needed, found.sole.in_view, found.sole.recoverable) == (1, 0, 1)
    assert found.applied["clearing"] > 0
    assert found.is_clean
    whole = simulate_record(talk, world("off"))
    assert whole.sole.in_view == 1


def test_a_compaction_reads_the_prefix_of_the_replies_from_the_cache() -> None:
    policy = replace(NATIVE, input_token_budget=0, compaction_threshold_tokens=30_000)
    steps = played(30, policy=policy)
    bills = [bill for step in steps for bill in step.summaries]
    assert len(bills) > 1
    assert all(bill.cache_read * 10 > bill.context * 9 for bill in bills)
    assert all(not step.violations for step in steps)
    assert any(step.messages.startswith('[{"role":"assistant"') for step in steps)


def test_without_a_summarizer_the_call_is_paid_and_our_own_steps_go_on() -> None:
    policy = replace(NATIVE, compaction_threshold_tokens=30_000)
    steps = played(20, policy=policy, summarizer=fail_summary)
    changes = [change.outcome for step in steps for change in step.changes]
    assert "rejected" in changes
    assert any(step.summaries for step in steps)
    assert all(not step.violations for step in steps)


def test_where_the_model_offers_neither_our_own_steps_do_it() -> None:
    steps = list(Replayer(record_with_fact(20), world(NATIVE)).steps())
    kinds = {change.kind for step in steps for change in step.changes}
    assert "compaction" in kinds
    assert "clearing" not in kinds
    assert all(step.prepared and not step.prepared.cleared for step in steps)


def test_the_legality_check_takes_a_block_that_comes_first_and_no_other() -> None:
    block = {"type": "compaction", "content": "x", "signature": "c2ln"}
    said = record([user("a"), {"role": "assistant", "content": [block]}, user("b")]).messages
    assert LegalityCheck().find_violations(said[1:]) == []
    assert LegalityCheck().find_violations(said) == [
        "a signed compaction block that does not come first"
    ]
