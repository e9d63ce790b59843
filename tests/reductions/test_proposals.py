"""Summaries that a person asks for: proposed, applied as shown or discarded, never lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.agent.ports import Ending, Refused
from conversations.agent.usage import Usage
from conversations.library import erase
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, Conversation, LedgerEntry, Proposal
from conversations.reductions import proposals
from conversations.reductions.explanation import explain_change
from conversations.reductions.preview import build_offer
from conversations.reductions.record_change import ManualChangeError
from conversations.reductions.summary import build_summary_card
from conversations.turns import side_calls
from conversations.turns.billed_usage import Timing
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import (
    WORDS,
    clean,
    digest,
    now,
    pending_summary,
    proposed,
    refused,
    summarise,
    talk,
    who,
)
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db


@pytest.fixture
def played() -> Played:
    return talk(stored_turns.played())


def test_a_summary_is_proposed_before_it_counts_and_applied_as_it_was_shown(
    played: Played,
) -> None:
    before, spent = digest(played), LedgerEntry.objects.count()
    price = build_offer(now(played), "summary").price
    assert price is not None
    assert (price.calls, price.model, price.reads > 100) == (1, stored_turns.MODEL, True)
    shown = proposed(played)
    assert digest(played) == before
    assert LedgerEntry.objects.count() == spent + 2
    assert proposals.request_summary(**who(played))[1] is False
    assert (
        refused(lambda: proposals.apply_proposal(**who(played), digest="sha256:0")).code == "moved"
    )
    row = proposals.apply_proposal(**who(played), digest=shown)
    assert digest(played) == shown
    assert (row.actor, row.summary_call) == (played.user, ApiCall.objects.latest("pk"))
    found = explain_change(now(played), row)
    assert found.summary_micros == row.summary_call.result.cost_micros  # type: ignore[union-attr]
    assert clean()


def test_words_that_come_too_late_are_not_applied(played: Played) -> None:
    shown = proposed(played)
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    error = refused(lambda: proposals.apply_proposal(**who(played), digest=shown))
    assert "too late" in error.text
    made = build_offer(now(played), "summary").proposed
    assert made is not None
    assert (made.preview, made.reason) == (None, error.text)
    proposals.discard_proposal(conversation_id=played.conversation.pk)
    assert build_offer(now(played), "summary").price is not None


def test_what_it_cost_is_the_price_of_its_own_calls(played: Played) -> None:
    proposed(played)

    def spent() -> int:
        made = build_offer(now(played), "summary").proposed
        assert made is not None
        return made.spent_micros

    before = spent()
    assert before > 0
    lease = people_and_turns.next_turn(now(played))
    stored_turns.summarise(lease)
    people_and_turns.answered(lease)
    assert spent() == before


def test_discarded_words_are_on_record_and_say_nothing_against_the_next(played: Played) -> None:
    before = digest(played)
    refusals = load_state(now(played), stored_turns.MODEL).rejected
    proposed(played)
    proposals.discard_proposal(conversation_id=played.conversation.pk)
    row = played.conversation.transformations.latest("seq")
    assert (row.kind, row.outcome, row.actor) == ("summary", "rejected", played.user)
    assert row.summary_call == ApiCall.objects.latest("pk")
    assert digest(played) == before
    assert load_state(now(played), stored_turns.MODEL).rejected == refusals
    proposals.discard_proposal(conversation_id=played.conversation.pk)
    assert clean()


def test_one_summary_at_a_time_is_asked_for(played: Played) -> None:
    request, _ = pending_summary(played)
    assert proposals.request_summary(**who(played)) == (request.proposal_id, False)
    assert refused(lambda: proposals.request_summary(**who(played), target=7)).code == "asking"
    proposals.discard_proposal(conversation_id=played.conversation.pk)
    assert Proposal.objects.exists()
    assert refused(lambda: proposals.apply_proposal(**who(played), digest="x")).code == "moved"


def test_a_claim_is_judged_by_the_clock_of_the_database(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = proposals.request_summary(**who(played))
    assert proposals.claim_proposal(proposal_id=key)
    ahead = timezone.now() + timedelta(minutes=5)
    monkeypatch.setattr(timezone, "now", lambda: ahead)
    assert proposals.expire_proposals() == 0
    proposals.renew_claim(proposal_id=key)
    assert Proposal.objects.get().asked_at < ahead


def test_a_call_of_a_dead_process_is_closed_and_its_cost_stays_spent(played: Played) -> None:
    request, sent = pending_summary(played)
    later = timezone.now() + timedelta(hours=1)
    assert side_calls.close_lost_side_calls() == proposals.expire_proposals() == 0
    assert side_calls.close_lost_side_calls(now=later) == proposals.expire_proposals(now=later) == 1
    call = ApiCall.objects.get(pk=sent.call)
    assert call.result.status == "lost"
    assert call.result.cost_micros > 0
    side_calls.close_side_call(
        call_id=sent.call, ending=Ending("complete", Usage(9, 9, 0, 0, 0)), timing=Timing(1, 2)
    )
    proposals.store_answer(proposal_id=request.proposal_id, text=WORDS, change=None)
    made = build_offer(now(played), "summary").proposed
    assert made is not None
    assert (made.text, "stopped" in made.reason) == ("", True)
    assert clean()


def test_a_refused_summary_is_recorded_with_its_cost(played: Played) -> None:
    request, sent = pending_summary(played)
    side_calls.close_side_call(
        call_id=sent.call,
        ending=Ending("complete", Usage(500, 1, 0, 0, 0), "max_tokens"),
        timing=Timing(1, 2),
    )
    with pytest.raises(StopIteration) as stop:
        request.steps.send(None)
    change = stop.value.value
    proposals.store_answer(proposal_id=request.proposal_id, reason=change.reason, change=change)
    row = played.conversation.transformations.latest("seq")
    assert (row.outcome, row.summary_call_id) == ("rejected", sent.call)
    assert row.reason == change.reason
    assert clean()


def test_without_money_nothing_is_asked_and_nothing_recorded(played: Played) -> None:
    people_and_turns.limited(played.user, 1, "day")
    rows = played.conversation.transformations.count()
    with pytest.raises(Refused, match="budget"):
        pending_summary(played)
    assert ApiCall.objects.filter(result=None).count() == 0
    assert played.conversation.transformations.count() == rows


def test_a_summary_is_rewritten_over_the_same_messages(played: Played) -> None:
    first = summarise(played)
    people_and_turns.answered(people_and_turns.next_turn(now(played), "More. " * 50))
    said = "Other words about the order 4711, and the file. " * 3
    shown = proposed(played, said, target=first.seq)
    made = build_offer(now(played), "summary").proposed
    assert made is not None
    assert made.target == first.seq
    row = proposals.apply_proposal(**who(played), digest=shown)
    assert (row.setting, digest(played)) == ("rebuild", shown)
    card = build_summary_card(now(played), row)
    before = build_summary_card(now(played), first)
    assert card is not None
    assert before is not None
    assert (card.first, card.last, card.count) == (before.first, before.last, before.count)
    with pytest.raises(ManualChangeError, match="newest"):
        proposals.request_summary(**who(played), target=first.seq)
    assert clean()


def test_too_little_is_not_summarised_and_a_proposal_goes_with_its_conversation() -> None:
    played = stored_turns.played()
    assert refused(lambda: proposals.request_summary(**who(played))).code == "nothing"
    assert build_offer(now(played), "summary").problem
    talk(played)
    proposed(played)
    Conversation.objects.filter(pk=played.conversation.pk).update(
        deleted_at=timezone.now(), erase_at=timezone.now()
    )
    assert erase.erase_conversation(conversation_id=played.conversation.pk) is not None
    assert not Proposal.objects.exists()
