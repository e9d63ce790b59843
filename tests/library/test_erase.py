"""Erasing: whole, recorded, after its time, and the books and the rest of the record still hold."""

from __future__ import annotations

import threading
from datetime import UTC, timedelta
from io import StringIO
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from agentweb.doctor import stored_data
from conversations.agent.ports import Sent
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.library.conversations import (
    delete_conversation,
    delete_everything,
    empty_trash,
    restore_conversation,
)
from conversations.library.erase import erase_conversation, erase_due_conversations
from conversations.library.search import search_messages
from conversations.log import texts
from conversations.log.chain import append_row
from conversations.log.fold_cache import CachedFold, fold_cache
from conversations.log.leases import Lease
from conversations.log.loaded_path import Start
from conversations.log.triggers import find_missing_guards
from conversations.models import (
    Blob,
    BudgetWindow,
    Conversation,
    Envelope,
    Erasure,
    LedgerEntry,
    Message,
    SearchText,
    ToolCall,
)
from conversations.reductions.pins import pin_originals
from conversations.turns import calls, turns
from conversations.turns.prompts import SendError
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db
KEPT = {"User", "ApiModel", "ModelPrice", "Budget", "BudgetWindow", "LedgerEntry", "Erasure"}
KEPT |= {"SiteChain", "AnchorMark", "ErasedDigests", "MoneyRecord", "BookedDifference"}


def rows() -> dict[str, int]:
    kinds = apps.get_app_config("conversations").get_models()
    return {kind.__name__: n for kind in kinds if (n := kind._base_manager.count())}


def deleted(played: Played) -> Conversation:
    played.conversation.refresh_from_db()
    delete_conversation(conversation=played.conversation)
    played.conversation.refresh_from_db()
    return played.conversation


def after(days: float) -> Any:
    return timezone.now() + timedelta(days=days)


def is_whole() -> None:
    tally = Tally()
    assert list(verify_everything(tally)) == []
    connection.check_constraints()


def test_what_is_deleted_waits_and_is_then_erased_whole() -> None:
    played = stored_turns.played()
    conversation = deleted(played)
    fold_cache.put(conversation.public_id, CachedFold(Start(seq=0), "", 0))
    assert erase_due_conversations() == 0
    assert erase_due_conversations(now=after(29.9)) == 0
    assert erase_due_conversations(now=after(30.1)) == 1
    assert set(rows()) <= KEPT
    assert not search_messages(played.user, "4711").rows
    assert fold_cache.take(conversation.public_id) is None
    is_whole()
    assert not Conversation.objects.filter(pk=conversation.pk).exists()


def test_the_days_are_a_setting(settings: Any) -> None:
    settings.AGENTWEB_TRASH_DAYS = 2
    deleted(stored_turns.played())
    assert erase_due_conversations(now=after(1.9)) == 0
    assert erase_due_conversations(now=after(2.1)) == 1


def test_what_was_brought_back_is_as_it_was_and_stays() -> None:
    played = stored_turns.played()
    played.conversation.refresh_from_db()
    before = people_and_turns.everything()
    conversation = deleted(played)
    restore_conversation(conversation=conversation)
    # Only that it was brought back is noted: retention rules count from then.
    assert Conversation.objects.exclude(restored_at=None).update(restored_at=None) == 1
    assert people_and_turns.everything() == before
    assert erase_due_conversations(now=after(1_000)) == 0


def test_the_erasure_says_what_went_and_nothing_of_what_was_said() -> None:
    played = stored_turns.played(title="A secret plan", result="secret result")
    conversation = deleted(played)
    counts = (conversation.messages.count(), conversation.transformations.count())
    calls_made, links = conversation.calls.count(), (conversation.links, conversation.chain)
    cost = sum(call.result.cost_micros for call in conversation.calls.all())
    erase_due_conversations(now=after(31))
    erasure = Erasure.objects.get()
    assert erasure.owner == played.user
    assert erasure.conversation == conversation.public_id
    assert (erasure.messages, erasure.transformations, erasure.calls) == (*counts, calls_made)
    assert (erasure.links, erasure.tail) == links
    assert erasure.due_at - erasure.deleted_at == timedelta(days=30)
    assert erasure.cost_micros == cost > 0
    (day,) = erasure.usage
    assert (day["model"], day["calls"], day["cost_micros"]) == (
        stored_turns.MODEL,
        calls_made,
        cost,
    )
    assert day["output_tokens"] == 120
    assert "secret" not in str(Erasure.objects.values())
    with pytest.raises(TypeError, match="append-only"):
        erasure.delete()


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_its_days_are_those_of_utc_wherever_the_reader_is_who_erases(zone: str) -> None:
    """At each moment it is another day in at least one of the zones."""
    conversation = deleted(stored_turns.played())
    days = {str(call.sent_at.astimezone(UTC).date()) for call in conversation.calls.all()}
    with timezone.override(ZoneInfo(zone)):
        erase_due_conversations(now=after(31))
    assert {row["day"] for row in Erasure.objects.get().usage} == days


def test_every_window_says_what_it_said_before() -> None:
    played = stored_turns.played()
    other = stored_turns.played("bob")
    window = BudgetWindow.objects.get(budget__user=played.user)
    used = window.spent + window.overrun
    assert used > 0
    deleted(played)
    erase_due_conversations(now=after(31))
    window.refresh_from_db()
    assert (window.spent, window.held, window.overrun) == (used, 0, 0)
    entry = LedgerEntry.objects.get(window=window)
    assert (entry.kind, entry.amount) == ("adjust", used)
    assert LedgerEntry.objects.filter(window__budget__user=other.user).count() > 1
    is_whole()


def test_what_cost_more_than_was_held_is_spent_like_the_rest() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 50_000_000)
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    huge = stored_turns.Usage(5_000_000, 20, 0, 0, 0)
    stored_turns.close(lease, sent.call, people_and_turns.complete(usage=huge))
    turns.finish_turn(lease=lease, finish=people_and_turns.Finish("done", "end_turn"))
    window = BudgetWindow.objects.get()
    assert window.overrun > 0
    total = window.spent + window.overrun
    delete_conversation(conversation=people_and_turns.conversation_of(lease))
    assert erase_due_conversations(now=after(31)) == 1
    window.refresh_from_db()
    assert (window.spent, window.overrun) == (total, 0)
    is_whole()


def test_texts_that_others_name_stay() -> None:
    played, other = stored_turns.played(), stored_turns.played("bob")
    blobs = set(Blob.objects.values_list("pk", flat=True))
    envelopes = set(Envelope.objects.values_list("pk", flat=True))
    deleted(played)
    erase_due_conversations(now=after(31))
    assert set(Blob.objects.values_list("pk", flat=True)) == blobs
    assert set(Envelope.objects.values_list("pk", flat=True)) == envelopes
    is_whole()
    deleted(other)
    erase_due_conversations(now=after(31))
    assert not Blob.objects.exists()
    assert not Envelope.objects.exists()


def test_pins_go_too() -> None:
    played = stored_turns.played()
    pin_originals(conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=["toolu_1"])
    deleted(played)
    erase_due_conversations(now=after(31))
    assert set(rows()) <= KEPT


def test_a_running_turn_is_stopped_and_waited_for() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    turn = delete_conversation(conversation=conversation)
    assert turn is not None
    turn.refresh_from_db()
    assert turn.stop_requested_at is not None
    assert erase_due_conversations(now=after(31)) == 0
    with pytest.raises(calls.Stopped):
        people_and_turns.opened(lease)
    turns.finish_turn(lease=lease, finish=people_and_turns.Finish("cancelled", "stopped"))
    assert erase_due_conversations(now=after(31)) == 1


def test_nothing_is_said_in_the_trash() -> None:
    played = stored_turns.played()
    stale = Conversation.objects.get(pk=played.conversation.pk)
    deleted(played)
    with pytest.raises(SendError) as caught:
        people_and_turns.next_turn(stale)
    assert caught.value.code == "deleted"


def test_what_is_not_in_the_trash_is_never_erased() -> None:
    played = stored_turns.played()
    assert erase_conversation(conversation_id=played.conversation.pk, now=after(999)) is None
    assert erase_conversation(conversation_id=0) is None
    empty_trash(owner_id=played.user.pk)
    assert erase_due_conversations() == 0


def test_the_trash_is_emptied_at_once_when_asked() -> None:
    first, second = stored_turns.played(), stored_turns.played("bob")
    deleted(first)
    deleted(second)
    empty_trash(owner_id=first.user.pk)
    assert erase_due_conversations() == 1
    assert Conversation.objects.get() == second.conversation
    empty_trash(owner_id=first.user.pk, public_id=second.conversation.public_id)
    assert erase_due_conversations() == 0


def test_deleting_everything_leaves_what_is_of_others() -> None:
    played, other = stored_turns.played(), stored_turns.played("bob")
    stored_turns.played(title="Another")
    running = people_and_turns.started_turn(played.user, "still running")
    (turn,) = delete_everything(owner_id=played.user.pk)
    assert turn.pk == running.turn_id
    assert erase_due_conversations(owner_id=played.user.pk) == 2
    assert Conversation.objects.filter(owner=played.user).count() == 1
    turns.finish_turn(lease=running, finish=people_and_turns.Finish("cancelled", "stopped"))
    assert erase_due_conversations() == 1
    assert set(Conversation.objects.all()) == {other.conversation}
    assert Message.objects.exclude(conversation=other.conversation).count() == 0
    assert SearchText.objects.exclude(conversation=other.conversation).count() == 0
    is_whole()


def test_an_erasing_that_fails_erases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    played = stored_turns.played()
    deleted(played)
    before = people_and_turns.everything()

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("conversations.library.erase.append_row", broken)
    with pytest.raises(ZeroDivisionError):
        erase_conversation(conversation_id=played.conversation.pk, now=after(31))
    assert people_and_turns.everything() == before
    assert find_missing_guards() == []
    with pytest.raises(Exception, match="append-only"):
        Message.objects.filter(conversation=played.conversation)._raw_delete("default")


def test_one_that_cannot_be_erased_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = stored_turns.played(), stored_turns.played("bob")
    deleted(first)
    deleted(second)

    def broken(row: Erasure, end: Any) -> None:
        if row.owner_id == first.user.pk:
            raise ZeroDivisionError
        append_row(row, end)

    monkeypatch.setattr("conversations.library.erase.append_row", broken)
    assert erase_due_conversations(now=after(31)) == 1
    assert Conversation.objects.get() == first.conversation
    assert find_missing_guards() == []
    monkeypatch.setattr("conversations.library.erase.append_row", append_row)
    assert erase_due_conversations(now=after(31)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_text_that_is_just_being_named_again_is_not_taken_away() -> None:
    played, other = stored_turns.played(), stored_turns.played("bob", result="something else")
    digest = played.conversation.turns.get().tool_calls.get().output_id
    deleted(played)
    named, erased = threading.Event(), threading.Event()

    def name_it() -> None:
        with transaction.atomic():
            assert texts.store_blob(wire.encode(stored_turns.LONG)) == digest
            named.set()
            # An eraser that did not wait would be done by now.
            assert not erased.wait(0.5)
            ToolCall.objects.filter(turn=other.turn).update(output_id=digest)

    def erase_it() -> None:
        named.wait(20)
        assert erase_due_conversations(now=after(31)) == 1
        erased.set()

    found = people_and_turns.crowd(2, lambda at: (name_it, erase_it)[at]())
    assert people_and_turns.failures(found) == []
    assert Blob.objects.filter(pk=digest).exists()
    connection.check_constraints()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_all", [False, True])
def test_what_is_thrown_away_under_an_answer_keeps_nobody_waiting(is_all: bool) -> None:
    for at in range(6):
        lease = people_and_turns.started_turn(people_and_turns.person(f"person {at}"))
        sent = people_and_turns.opened(lease)

        def act(who: int, lease: Lease = lease, sent: Sent = sent) -> None:
            if who:
                stored_turns.close(lease, sent.call, people_and_turns.complete())
            elif is_all:
                delete_everything(owner_id=lease.user_id)
            else:
                delete_conversation(conversation=people_and_turns.conversation_of(lease))

        assert people_and_turns.failures(people_and_turns.crowd(2, act)) == []
        assert people_and_turns.turn_of(lease).stop_requested_at is not None
    is_whole()


def test_the_commands_erase_what_is_due_or_all_of_one_user() -> None:
    first, second = stored_turns.played(), stored_turns.played("bob")
    deleted(first)
    ago = timezone.now() - timedelta(days=1)
    Conversation.objects.exclude(deleted_at=None).update(erase_at=ago)
    out = StringIO()
    call_command("erase", stdout=out)
    call_command("erase", "--user", "bob", stdout=out)
    assert out.getvalue() == "1 erased\n1 erased\n"
    assert {row.owner for row in Erasure.objects.all()} == {first.user, second.user}
    with pytest.raises(CommandError, match="no user 'eve'"):
        call_command("erase", "--user", "eve")


def test_the_doctor_tells_of_text_that_nobody_cleaned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    due = deleted(stored_turns.played())
    assert erase_conversation(conversation_id=due.pk, now=due.erase_at) is not None
    assert [line.state for line in stored_data.check_erasures()] == ["ok"]
    monkeypatch.setattr(stored_data, "CLEANED", timedelta(0))
    [line] = stored_data.check_erasures()
    assert (line.state, "AGENTWEB_MIGRATE_DATABASE_URL" in line.hint) == ("warn", True)
