"""Retention rules and legal holds: what goes and when, what never goes, and how that is said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from conversations.audit.verify import Tally, verify_everything
from conversations.files.attachments import store_attachment
from conversations.library import erase
from conversations.library.conversations import (
    LibraryError,
    delete_conversation,
    delete_everything,
    empty_trash,
    restore_conversation,
)
from conversations.library.retention import (
    Limit,
    apply_retention,
    find_limits,
    preview_rules,
)
from conversations.log.legal_holds import HoldError, list_held, place_hold, release_hold
from conversations.log.texts import store_blob
from conversations.models import (
    Attachment,
    Conversation,
    ErasedDigests,
    Erasure,
    LegalHold,
    RetentionRule,
    User,
)
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import read_record
from conversations.turns.forks import fork_conversation
from conversations.turns.turns import send_prompt
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def officer() -> User:
    return User.objects.create(username="officer")


def group_of(*people: User, name: str = "Staff") -> Group:
    group = Group.objects.create(name=name)
    for user in people:
        user.groups.add(group)
    return group


def chat(name: str = "ada", *, idle: timedelta = timedelta(0)) -> Conversation:
    found = stored_turns.played(name).conversation
    Conversation.objects.filter(pk=found.pk).update(updated_at=timezone.now() - idle)
    found.refresh_from_db()
    return found


def attach(conversation: Conversation, at: datetime) -> None:
    row = Attachment.objects.create(
        owner_id=conversation.owner_id, conversation=conversation, name="a.txt",
        media_type="text/plain", size=1, estimate=1, data_id=store_blob("a"),
    )  # fmt: skip
    Attachment.objects.filter(pk=row.pk).update(created_at=at)


def is_intact() -> None:
    assert list(verify_everything(Tally())) == []
    connection.check_constraints()


def state(conversation: Conversation) -> str:
    row = Conversation.objects.filter(pk=conversation.pk).first()
    return "erased" if row is None else "trash" if row.deleted_at else "kept"


# Rules.


@pytest.mark.parametrize("of_group", [False, True])
def test_a_chat_goes_at_exactly_its_days_and_not_before(of_group: bool) -> None:
    mine = chat()
    group = group_of(mine.owner) if of_group else None
    RetentionRule.objects.create(group=group, idle_days=30)
    at = mine.updated_at + 30 * DAY
    assert apply_retention(now=at - timedelta(microseconds=1)) == 0
    assert state(mine) == "kept"
    assert apply_retention(now=at) == 1
    assert apply_retention(now=at) == 0
    mine.refresh_from_db()
    assert mine.deleted_at == at
    assert mine.removed_by_rule.startswith("no message for 30 days (")


def test_who_is_in_two_groups_is_under_the_strictest_rule(settings: Any) -> None:
    settings.AGENTWEB_TRASH_DAYS = 90
    mine, others = chat(idle=21 * DAY), chat("bob", idle=21 * DAY)
    group_of(mine.owner, others.owner, name="Staff")
    strict = group_of(mine.owner, name="Interns")
    RetentionRule.objects.create(group=Group.objects.get(name="Staff"), idle_days=30, then="erase")
    RetentionRule.objects.create(group=strict, idle_days=20)
    assert find_limits(mine.owner) == [Limit(of_files=False, trash_after=20, erase_after=30)]
    assert find_limits(others.owner) == [Limit(of_files=False, trash_after=None, erase_after=30)]
    assert apply_retention() == 1
    assert (state(mine), state(others)) == ("trash", "kept")
    # What one rule put into the trash for 90 days, the other erases after 30.
    later = timezone.now() + 9 * DAY
    assert apply_retention(now=later) == 2
    assert erase.erase_due_conversations(now=later) == 2
    assert {row.rule for row in Erasure.objects.all()} == {"no message for 30 days (Staff)"}
    assert ErasedDigests.objects.count() == 2
    is_intact()


def test_a_chat_with_an_old_file_goes_whole_and_does_not_come_back() -> None:
    mine, plain, now = chat(), chat("bob"), timezone.now()
    attach(mine, now - 7 * DAY)
    attach(plain, now - 7 * DAY + timedelta(minutes=1))
    RetentionRule.objects.create(file_days=7)
    assert find_limits(mine.owner)[0].of_files
    assert apply_retention(now=now) == 1
    assert (state(mine), state(plain)) == ("trash", "kept")
    mine.refresh_from_db()
    with pytest.raises(LibraryError, match="a file older than 7 days"):
        restore_conversation(conversation=mine)


def test_a_fork_keeps_the_days_on_which_its_files_were_attached() -> None:
    mine, now = chat(), timezone.now()
    begun = mine.turns.get()
    file = store_attachment(owner_id=mine.owner_id, name="a.txt", data=b"a")
    sent = send_prompt(
        conversation=mine, text="Look", client_id=uuid4(), attachments=[file.public_id]
    )
    people_and_turns.answered(people_and_turns.claimed(sent))
    Attachment.objects.update(created_at=now - 7 * DAY)
    before, fork = (fork_conversation(turn=turn) for turn in (begun, sent))
    assert not before.attachments.exists()
    RetentionRule.objects.create(file_days=7)
    assert apply_retention(now=now) == 2
    assert (state(mine), state(fork), state(before)) == ("trash", "trash", "kept")


def test_an_idle_chat_that_its_owner_brings_back_stays_as_long_again() -> None:
    RetentionRule.objects.create(idle_days=30)
    mine = chat(idle=31 * DAY)
    assert apply_retention() == 1
    restore_conversation(conversation=mine)
    assert apply_retention() == 0
    assert apply_retention(now=timezone.now() + 29 * DAY) == 0
    assert apply_retention(now=timezone.now() + 31 * DAY) == 1


def test_an_import_with_old_dates_stays_as_long_as_a_new_chat() -> None:
    RetentionRule.objects.create(idle_days=30, then="erase")
    raw = b"""{"id": "old", "created_at": "2020-01-01T00:00:00Z",
               "messages": [{"role": "user", "content": "Hi"}]}"""
    mine = import_recording(
        user=people_and_turns.person(), recording=read_record(raw), model=stored_turns.MODEL
    )
    assert mine.updated_at.year == 2020
    assert apply_retention() == 0
    assert apply_retention(now=timezone.now() + 29 * DAY) == 0
    assert apply_retention(now=timezone.now() + 31 * DAY) == 1


def test_a_rule_may_end_a_temporary_chat_earlier_and_never_later() -> None:
    mine = chat()
    ends = mine.updated_at + 3 * DAY
    Conversation.objects.filter(pk=mine.pk).update(erase_at=ends)
    rule = RetentionRule.objects.create(idle_days=1)
    assert apply_retention(now=ends) == 0
    assert preview_rules(now=ends).trashed == 0
    rule.then = "erase"
    rule.save()
    # What is due already is left to its own time, which its erasure names.
    assert apply_retention(now=ends) == 0
    earlier = mine.updated_at + DAY
    assert apply_retention(now=earlier) == 1
    assert erase.erase_due_conversations(now=earlier) == 1
    assert Erasure.objects.get().due_at == earlier
    is_intact()


def test_what_answers_stays_and_a_sweep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    RetentionRule.objects.create(idle_days=1, then="erase")
    people_and_turns.started_turn(people_and_turns.person("carol"))
    for name in ("ada", "bob", "dan"):
        chat(name)
    Conversation.objects.update(updated_at=timezone.now() - 2 * DAY)
    monkeypatch.setattr("conversations.library.retention.MOST", 2)
    assert [apply_retention(), apply_retention(), apply_retention()] == [2, 1, 0]
    assert erase.erase_due_conversations() == 3
    assert Conversation.objects.get().owner.username == "carol"


def test_a_rule_has_days_and_there_is_one_for_each_group() -> None:
    RetentionRule.objects.create(idle_days=1)
    for fields in ({"idle_days": 2}, {"group": group_of()}):
        with pytest.raises(IntegrityError), transaction.atomic():
            RetentionRule.objects.create(**fields)


def test_the_dry_run_lists_and_counts_and_changes_nothing(officer: User) -> None:
    chats = [chat("ada", idle=40 * DAY), chat("bob", idle=50 * DAY), chat("eve", idle=9 * DAY)]
    held = chat("dan", idle=60 * DAY)
    place_hold(actor_id=officer.pk, reason="A case", public_id=held.public_id)
    RetentionRule.objects.create(idle_days=30)
    RetentionRule.objects.create(group=group_of(chats[0].owner), idle_days=35, then="erase")
    out = StringIO()
    call_command("retention", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith(f"erase  ada  {str(chats[0].public_id)[:8]}  last message ")
    assert lines[1].startswith("trash  bob")
    assert lines[2] == "1 to the trash, 1 erased, of 2 people; 1 kept by a legal hold"
    call_command("retention", "--limit", "1", stdout=out)
    assert "and 1 more" in out.getvalue()
    assert {state(one) for one in [*chats, held]} == {"kept"}
    # A rule that is not saved yet says what it would do.
    found = preview_rules([RetentionRule(idle_days=5)])
    assert (found.trashed, found.erased, found.people, found.held) == (3, 0, 3, 1)


# Holds.


@pytest.mark.parametrize("of_person", [False, True])
def test_what_is_held_goes_by_no_way_until_it_is_released(of_person: bool, officer: User) -> None:
    mine, trashed = chat(idle=90 * DAY), chat(idle=90 * DAY)
    other = chat(idle=90 * DAY)
    delete_conversation(conversation=trashed)
    for one in [mine] if of_person else [mine, trashed]:
        target = {"owner_id": one.owner_id} if of_person else {"public_id": one.public_id}
        place_hold(actor_id=officer.pk, reason="Case 4711", **target)
    RetentionRule.objects.create(idle_days=1, then="erase")
    attempts: list[Callable[[], object]] = [
        lambda: delete_conversation(conversation=mine),
        lambda: empty_trash(owner_id=trashed.owner_id, public_id=trashed.public_id),
    ]
    for attempt in attempts:
        with pytest.raises(LibraryError, match="under a legal hold"):
            attempt()
    empty_trash(owner_id=mine.owner_id)
    delete_everything(owner_id=mine.owner_id)
    out = StringIO()
    call_command("erase", "--user", mine.owner.username, stdout=out)
    kept = 3 if of_person else 2
    assert out.getvalue().endswith(f"{kept} kept: under a legal hold\n")
    later = timezone.now() + 400 * DAY
    apply_retention(now=later)
    erase.erase_due_conversations(now=later)
    assert (state(mine), state(trashed)) == ("kept", "trash")
    assert state(other) == ("kept" if of_person else "erased")
    assert list_held(mine.owner_id).count() == kept
    for hold in LegalHold.objects.all():
        release_hold(hold_id=hold.pk, actor_id=officer.pk, reason="Closed")
    apply_retention(now=later)
    erase.erase_due_conversations(now=later)
    assert not Conversation.objects.exists()
    is_intact()


@pytest.mark.django_db(transaction=True)
def test_a_hold_that_is_placed_while_an_erasure_runs_comes_before_it_or_after(
    officer: User,
) -> None:
    """The site's chain proves the order."""
    for at in range(6):
        mine = chat(f"person {at}", idle=90 * DAY)
        delete_conversation(conversation=mine)
        Conversation.objects.filter(pk=mine.pk).update(erase_at=timezone.now())

        def act(who: int, mine: Conversation = mine) -> None:
            if who:
                place_hold(actor_id=officer.pk, reason="A case", owner_id=mine.owner_id)
            else:
                erase.erase_conversation(conversation_id=mine.pk)

        assert people_and_turns.failures(people_and_turns.crowd(2, act)) == []
        hold = LegalHold.objects.get(owner=mine.owner)
        erasure = Erasure.objects.filter(owner=mine.owner).first()
        assert (erasure is None) == (state(mine) == "trash")
        assert erasure is None or erasure.link < hold.link
    is_intact()


@pytest.mark.parametrize("target", ["person", "chat"])
def test_a_hold_that_comes_while_texts_are_read_stops_the_erasure(
    target: str, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = chat()
    delete_conversation(conversation=mine)
    read = erase.digest_texts

    def hold_meanwhile(**given: Any) -> Any:
        of = {"owner_id": mine.owner_id} if target == "person" else {"public_id": mine.public_id}
        place_hold(actor_id=officer.pk, reason="A case", **of)
        return read(**given)

    monkeypatch.setattr(erase, "digest_texts", hold_meanwhile)
    later = timezone.now() + 400 * DAY
    assert erase.erase_conversation(conversation_id=mine.pk, now=later) is None
    assert state(mine) == "trash"
    assert not Erasure.objects.exists()
    is_intact()


def test_a_hold_has_a_reason_and_ends_once(officer: User) -> None:
    mine = chat()
    with pytest.raises(HoldError, match="reason"):
        place_hold(actor_id=officer.pk, reason="  ", owner_id=mine.owner_id)
    with pytest.raises(HoldError, match="at most"):
        place_hold(actor_id=officer.pk, reason="x" * 501, owner_id=mine.owner_id)
    with pytest.raises(HoldError, match="Choose"):
        place_hold(actor_id=officer.pk, reason="A case")
    with pytest.raises(HoldError, match="no such chat"):
        place_hold(
            actor_id=officer.pk, reason="A case", owner_id=officer.pk, public_id=mine.public_id
        )
    hold = place_hold(actor_id=officer.pk, reason="A  case", public_id=mine.public_id)
    assert (hold.owner_id, hold.reason) == (mine.owner_id, "A case")
    release = release_hold(hold_id=hold.pk, actor_id=officer.pk, reason="Closed")
    assert release.link == hold.link + 1
    with pytest.raises(HoldError, match="already"):
        release_hold(hold_id=hold.pk, actor_id=officer.pk, reason="Closed")
    is_intact()
