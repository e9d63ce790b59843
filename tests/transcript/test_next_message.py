"""The price of the next message: from the figures of the meter, to the micro-dollar."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.agent.ports import Ending, Finish
from conversations.agent.usage import Usage, read_usage
from conversations.budgets.prices import load_price_list
from conversations.context.steps.next_call import NextCall
from conversations.context.steps.summary_call import INSTRUCTION, THOUGHT, WRITTEN
from conversations.context.view import wire
from conversations.context.view.envelope import build_envelope
from conversations.log.turn_state import load_state
from conversations.models import ApiModel, Conversation, ModelPrice, Turn
from conversations.reductions import manual_changes
from conversations.transcript.meter import read_meter
from conversations.transcript.next_message import NextMessage, price_summary
from conversations.turns import turns
from conversations.turns.versions import edit_prompt, show_version
from tests.support import people_and_turns, reduced_conversations, stored_turns

pytestmark = pytest.mark.django_db
OTHER = "claude-opus-5-5"


def said(usage: Usage, text: str = "Hello.", *before: dict[str, Any]) -> Ending:
    blocks = [*before, {"type": "text", "text": text}]
    return people_and_turns.complete(*map(wire.encode, blocks), usage=usage)


def talked(usage: Usage, text: str = "Hello.", *before: dict[str, Any]) -> Conversation:
    """Give a chat of one turn whose answer has this text and reported this."""
    lease = people_and_turns.started_turn()
    ending = said(usage, text, *before)
    stored_turns.close(lease, people_and_turns.opened(lease).call, ending)
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    return people_and_turns.conversation_of(lease)


def forecast(conversation: Conversation) -> NextMessage:
    found = read_meter(conversation, has_next=True).next
    assert found is not None
    return found


def at_price(reads: int, writes: int, output: int) -> int:
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    counts = {"cache_read": reads, "cache_write_5m": writes, "output": output}
    return -(-sum(prices.rate(name, reads + writes) * n for name, n in counts.items()) // 1_000_000)


def test_with_a_warm_cache_what_was_sent_is_read_and_the_answer_written() -> None:
    found = forecast(talked(Usage(1_000, 500, 8_000, 21_000, 0)))
    assert (found.now.action, found.now.is_certain) == ("nothing", True)
    assert found.now.full == found.now.reduced == at_price(30_000, 500, 500)
    assert found.later is not None
    assert found.later.full == at_price(0, 30_500, 500)
    assert 0 < found.left <= 300
    assert (found.now.is_dear, found.later.is_dear) == (
        at_price(30_000, 500, 500) > 10_000, at_price(0, 30_500, 500) > 10_000
    )  # fmt: skip


def test_what_is_kept_for_an_hour_is_written_anew_for_five_minutes(monkeypatch: Any) -> None:
    raw = {
        "input_tokens": 1_000,
        "output_tokens": 500,
        "cache_read_input_tokens": 8_000,
        "cache_creation_input_tokens": 21_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 21_000},
    }
    conversation = talked(Usage(1_000, 500, 8_000, 0, 21_000, wire.encode(raw)))
    found = forecast(conversation)
    assert 3_500 < found.left <= 3_600
    assert found.later is not None
    assert found.later.full == at_price(0, 30_500, 500)
    later = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr(timezone, "now", lambda: later)
    cold = forecast(conversation)
    assert (cold.later, cold.until) == (None, None)
    assert cold.now.full == found.later.full


def test_what_an_earlier_call_paid_an_hour_for_is_kept_after_the_rest(monkeypatch: Any) -> None:
    counts = {"input_tokens": 1_000, "output_tokens": 500, "cache_read_input_tokens": 8_000}
    hour = {"cache_creation": {"ephemeral_1h_input_tokens": 20_000}}
    raw = wire.encode(counts | {"cache_creation_input_tokens": 20_000} | hour)
    lease = people_and_turns.started_turn()
    long = stored_turns.ENVELOPE.with_lifetime("1h")
    call = people_and_turns.opened(lease, long).call
    paid = Usage(1_000, 500, 8_000, 0, 20_000, raw)
    stored_turns.close(lease, call, people_and_turns.complete(usage=paid))
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease))
    call = people_and_turns.opened(lease).call
    last = people_and_turns.complete(usage=Usage(0, 500, 29_000, 6_000, 0))
    stored_turns.close(lease, call, last)
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    conversation = people_and_turns.conversation_of(lease)
    found = forecast(conversation)
    assert found.now.full == at_price(35_000, 500, 500)
    assert found.later is not None
    assert 0 < found.left <= 300
    assert found.later.full == at_price(29_000, 6_500, 500)
    start = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: start + timedelta(minutes=20))
    between = forecast(fresh(conversation))
    assert 2_300 < between.left <= 2_400
    assert between.now.full == found.later.full
    assert between.later is not None
    assert between.later.full == at_price(0, 35_500, 500)
    monkeypatch.setattr(timezone, "now", lambda: start + timedelta(hours=2))
    assert forecast(fresh(conversation)).until is None


def test_what_a_change_by_hand_broke_is_written_anew() -> None:
    played = reduced_conversations.talk(stored_turns.played())
    lease = people_and_turns.next_turn(reduced_conversations.now(played))
    usage = Usage(0, 500, 29_000, 1_000, 0)
    stored_turns.close(lease, people_and_turns.opened(lease).call, said(usage))
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    before = forecast(reduced_conversations.now(played))
    assert before.now.full == at_price(30_000, 500, 500)
    row = reduced_conversations.compact(played)
    after = forecast(reduced_conversations.now(played))
    state = load_state(reduced_conversations.now(played), stored_turns.MODEL)
    kept = [one for one in state.view.messages if one.seq < (state.edited_from or 0)]
    assert len(kept) < len(state.view.messages) // 2
    assert after.now.full == after.now.reduced
    behind = sum(one.tokens for one in state.view.messages[len(kept) :])
    assert (after.now.full or 0) >= at_price(after.now.tokens - behind, behind, 500)
    assert after.later is not None
    assert (after.now.full or 0) < (after.later.full or 0)
    manual_changes.undo_change(**reduced_conversations.who(played), seq=row.seq)
    again = forecast(reduced_conversations.now(played))
    assert (again.now, again.later) == (before.now, before.later)


def talked_before(minutes: int, hour: int) -> Conversation:
    """Give a chat that was sent minutes ago, and in another version now, paid for an hour."""
    with pytest.MonkeyPatch.context() as patch:
        start = timezone.now() - timedelta(minutes=minutes)
        patch.setattr(timezone, "now", lambda: start)
        conversation = talked(Usage(1_000, 500, 8_000, 21_000, 0))
    first = conversation.turns.get()
    created = {"ephemeral_5m_input_tokens": 90, "ephemeral_1h_input_tokens": hour}
    usage = Usage(1_000, 500, 0, 90, hour, wire.encode({"cache_creation": created}))
    lease = people_and_turns.claimed(
        edit_prompt(turn=first, text="Something else", client_id=uuid4())
    )
    stored_turns.close(lease, people_and_turns.opened(lease).call, said(usage))
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    show_version(turn=first)
    return fresh(conversation)


@pytest.mark.parametrize(("minutes", "hour"), [(120, 0), (1, 20_000)])
def test_what_another_version_was_sent_is_not_what_is_kept(minutes: int, hour: int) -> None:
    found = forecast(talked_before(minutes, hour))
    assert found.left <= max(0, 300 - 60 * minutes)
    assert (found.later is None) is (minutes > 5)
    assert (found.later or found.now).full == at_price(0, 30_500, 500)


def test_a_call_without_an_answer_is_not_what_is_kept() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.fail(lease, "emulated")
    turns.finish_turn(lease=lease, finish=Finish("failed"))
    conversation = people_and_turns.conversation_of(lease)
    assert load_state(conversation, stored_turns.MODEL).called_at == 0
    assert forecast(conversation).until is None


def test_a_summary_is_priced_at_the_model_that_writes_it(settings: Any) -> None:
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    own = NextCall((), 0, 0, 0, summary_input=20_000)
    shared = NextCall((), 0, 0, 0, summary_cached=100_000)
    compacted = NextCall((), 0, 0, 0, compaction_input=20_000)
    costs = [price_summary(call, prices) for call in (own, shared, compacted)]
    fresh_input = Usage(20_000, WRITTEN, 0, 0, 0)
    assert costs[0] == costs[2] == prices.cost(fresh_input)
    assert costs[1] < prices.cost(Usage(INSTRUCTION, WRITTEN + THOUGHT, 100_000, 0, 0)) * 11 // 10
    settings.AGENTWEB_SUMMARY_MODEL = "claude-haiku-5-5"
    cheap = load_price_list("claude-haiku-5-5", timezone.now())
    assert price_summary(own, prices) == cheap.cost(fresh_input) < costs[0]
    assert [price_summary(call, prices) for call in (shared, compacted)] == costs[1:]


def test_a_long_chat_costs_no_more_queries_than_a_short_one() -> None:
    conversation = talked(Usage(1_000, 500, 8_000, 21_000, 0))

    def count() -> int:
        fresh = Conversation.objects.select_related("owner").get(pk=conversation.pk)
        with CaptureQueriesContext(connection) as found:
            read_meter(fresh, has_next=True)
        assert not [one for one in found.captured_queries if '"content"' in one["sql"]]
        return len(found)

    before = count()
    for _ in range(6):
        people_and_turns.answered(people_and_turns.next_turn(conversation))
    assert count() == before <= 6


def test_without_a_price_or_a_model_nothing_is_made_up() -> None:
    conversation = talked(Usage(1_000, 500, 8_000, 21_000, 0))
    ModelPrice.objects.filter(kind="output").delete()
    found = forecast(conversation)
    assert (found.now.action, found.now.full, found.now.is_dear) == ("nothing", None, False)
    Conversation.objects.update(policy={"input_token_budget": "many"})
    assert read_meter(fresh(conversation), has_next=True).next is None
    Conversation.objects.update(policy={}, model="gone")
    assert read_meter(fresh(conversation), has_next=True).next is None


def test_what_the_api_cleared_counts_for_the_thresholds() -> None:
    edits = [{"cleared_tool_uses": 3, "cleared_input_tokens": 60_000}]
    raw = {"input_tokens": 9_000, "output_tokens": 50}
    usage = read_usage(raw | {"context_management": {"applied_edits": edits}})
    text = "It said that the order would come on Monday. " * 500
    conversation = talked(usage, text)
    for _ in range(6):
        lease = people_and_turns.next_turn(conversation)
        stored_turns.close(lease, people_and_turns.opened(lease).call, said(usage, text))
        turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    policy = {"preset": "native", "input_token_budget": 40_000}
    actions = {}
    for threshold in (50_000, 90_000):
        given = policy | {"compaction_threshold_tokens": threshold}
        Conversation.objects.update(policy=given)
        assert read_meter(fresh(conversation)).tokens == 9_050
        actions[threshold] = forecast(fresh(conversation)).now.action
    assert actions == {50_000: "summarise", 90_000: "nothing"}


def test_a_chat_of_nothing_but_a_question_is_forecast_too() -> None:
    lease = people_and_turns.started_turn()
    turns.finish_turn(lease=lease, finish=Finish("failed"))
    found = forecast(people_and_turns.conversation_of(lease))
    assert (found.now.action, found.until) == ("nothing", None)


def test_what_does_not_fit_the_model_is_said_before() -> None:
    conversation = talked(Usage(1_000, 500, 8_000, 91_000, 0))
    ApiModel.objects.filter(pk=conversation.model).update(window=64_000)
    Conversation.objects.update(policy={"preset": "off"})
    assert forecast(fresh(conversation)).now.action == "refuse"
    assert Turn.objects.count() == 1


def test_another_model_is_forecast_by_an_estimate_and_with_nothing_in_its_cache() -> None:
    text = "It said that the order would come on Monday. " * 900
    conversation = talked(Usage(9_000, 500, 0, 0, 0), text)
    other = build_envelope(model=OTHER, max_tokens=2_000, system="Be brief. " * 500)
    for envelope in (stored_turns.ENVELOPE, stored_turns.ENVELOPE, other):
        lease = people_and_turns.next_turn(conversation)
        call = people_and_turns.opened(lease, envelope).call
        stored_turns.close(lease, call, said(Usage(9_000, 500, 0, 0, 0), text))
        turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    state = load_state(fresh(conversation), stored_turns.MODEL)
    assert (state.report, state.called_at) == (None, 0)
    found = forecast(fresh(conversation))
    # A reply of the present model is recent enough for a price of now and one of later.
    assert found.later is not None
    estimate = state.view.tokens + other.overhead
    assert found.now.action == found.later.action == "nothing"
    assert estimate < found.now.tokens == found.later.tokens < estimate + 100
    for least, action in ((50_000, "trim"), (0, "summarise")):
        policy = {"preset": "thrifty", "summary_least_tokens": least}
        Conversation.objects.update(policy=policy)
        found = forecast(fresh(conversation))
        assert found.later is not None
        assert found.now.action == found.later.action == action
    Conversation.objects.update(policy={}, model=OTHER)
    assert forecast(fresh(conversation)).now.tokens == 9_500


def test_the_thinking_of_another_model_is_not_forecast_to_be_sent() -> None:
    thought = {"type": "thinking", "thinking": "It may come. " * 3_000, "signature": "c2ln"}
    conversation = talked(Usage(9_000, 500, 0, 0, 0), "So.", thought)
    Conversation.objects.update(model=OTHER)
    assert forecast(fresh(conversation)).now.tokens < 1_000


def test_without_any_call_a_forecast_is_certain_only_if_many_tools_would_not_change_it() -> None:
    lease = people_and_turns.started_turn(text="words to read " * 8_000)
    turns.finish_turn(lease=lease, finish=Finish("failed"))
    conversation = people_and_turns.conversation_of(lease)
    assert (forecast(conversation).now.action, forecast(conversation).now.is_certain) == (
        "nothing", True
    )  # fmt: skip
    tokens = forecast(conversation).now.tokens
    ApiModel.objects.filter(pk=conversation.model).update(window=(tokens + 10_000) * 5 // 4)
    found = forecast(fresh(conversation)).now
    assert (found.action, found.is_certain) == ("nothing", False)


def test_a_state_is_prepared_once_and_another_state_anew() -> None:
    conversation = talked(Usage(1_000, 500, 8_000, 91_000, 0))

    def read() -> tuple[NextMessage, bool]:
        with CaptureQueriesContext(connection) as found:
            outlook = forecast(fresh(conversation))
        # Only a forecast that is prepared reads the messages.
        return outlook, any('"content"' in one["sql"] for one in found.captured_queries)

    tight = {"max_conversation_messages": 1_000}
    Conversation.objects.update(policy=tight)
    first, was_read = read()
    assert was_read
    assert read() == (first, False)
    # A changed policy, window, price, choice or log is another state.
    Conversation.objects.update(policy={**tight, "preset": "off"})
    assert read()[1]
    ApiModel.objects.filter(pk=conversation.model).update(window=64_000)
    refused, was_read = read()
    assert was_read
    assert refused.now.action == "refuse"
    Conversation.objects.update(policy=tight)
    read()
    assert not read()[1]
    people_and_turns.answered(people_and_turns.next_turn(conversation))
    assert read()[1]
    assert not read()[1]
    ModelPrice.objects.filter(kind="output").delete()
    assert read()[1]


def fresh(conversation: Conversation) -> Conversation:
    return Conversation.objects.get(pk=conversation.pk)
