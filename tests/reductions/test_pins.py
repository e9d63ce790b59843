"""Pins and restores: what a person keeps is sent in full from then on, all of it on record."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.audit.verify import Tally, verify_everything
from conversations.context.pipeline import Situation, prepare
from conversations.context.policy.policy import build_policy
from conversations.context.view import wire
from conversations.context.view.view import View
from conversations.log.path import fold_path, read_path
from conversations.log.turn_state import load_state
from conversations.models import ApiModel, Conversation, Message, Pin, Transformation
from conversations.reductions.manual_changes import undo_change
from conversations.reductions.pins import list_pins, pin_originals, unpin_originals
from conversations.reductions.record_change import ManualChangeError
from conversations.signals import transformation_proposed
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import LONG, Played

pytestmark = pytest.mark.django_db


@pytest.fixture
def played() -> Played:
    return stored_turns.played()


def keep(played: Played, *ids: str) -> Transformation | None:
    return pin_originals(
        conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=ids or ("toolu_1",)
    )


def drop(played: Played, id: str = "toolu_1") -> None:
    unpin_originals(conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=[id])


def now(played: Played) -> Conversation:
    return Conversation.objects.get(pk=played.conversation.pk)


def view(played: Played, tip: int | None = None) -> View:
    return fold_path(read_path(now(played), tip))


def refused(played: Played, *ids: str) -> ManualChangeError:
    before = people_and_turns.everything()
    with pytest.raises(ManualChangeError) as caught:
        keep(played, *ids)
    assert people_and_turns.everything() == before
    return caught.value


def clean() -> bool:
    return list(verify_everything(Tally())) == []


def test_a_shortened_result_comes_back_and_is_pinned_by_whom(played: Played) -> None:
    before = view(played)
    assert LONG not in before.body
    row = keep(played)
    assert row is not None
    assert (row.kind, row.outcome, row.actor) == ("restore", "applied", played.user)
    assert (row.turn, row.parent) == (played.turn, row.seq - 1)
    assert wire.encode(LONG)[1:-1] in view(played).body
    assert row.tokens_after > row.tokens_before == before.tokens
    pin = Pin.objects.get()
    assert (pin.target, pin.is_pinned, pin.actor) == ("toolu_1", True, played.user)
    assert list_pins(now(played)) == {"toolu_1"}
    assert clean()


def test_what_is_in_full_is_pinned_without_a_change(played: Played) -> None:
    keep(played)
    entries = Transformation.objects.count()
    assert keep(played, "toolu_1") is None
    assert keep(played, "msg_1") is None
    assert keep(played, "1") is None
    assert (Transformation.objects.count(), Pin.objects.count()) == (entries, 2)
    assert list_pins(now(played)) == {"toolu_1", 1}


def test_the_latest_row_says_what_is_pinned_and_the_others_stay(played: Played) -> None:
    keep(played)
    drop(played)
    drop(played)
    assert list_pins(now(played)) == frozenset()
    keep(played)
    keep(played, "msg_1")
    drop(played, "msg_1")
    assert [pin.is_pinned for pin in Pin.objects.order_by("link")] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert list_pins(now(played)) == {"toolu_1"}
    assert str(Pin.objects.latest("pk")) == "message 1 not pinned"
    assert str(Pin.objects.earliest("pk")) == "toolu_1 pinned"
    assert clean()


def test_pins_are_one_query(played: Played) -> None:
    for _ in range(10):
        keep(played)
        drop(played)
    with CaptureQueriesContext(connection) as found:
        list_pins(now(played))
    assert len(found) == 2  # the conversation and its pins


def test_a_restored_original_outlives_the_next_reductions(played: Played) -> None:
    keep(played)
    for at in range(8):
        lease = people_and_turns.next_turn(now(played), f"And then {at}? " + "words " * 300)
        people_and_turns.answered(lease)
    people_and_turns.next_turn(now(played))
    found = load_state(now(played), stored_turns.MODEL)
    pinned = list_pins(now(played))
    assert pinned == {"toolu_1"}
    tight = build_policy(
        "classic",
        {"input_token_budget": 1_000, "max_conversation_bytes": 4_000, "tool_policies": []},
    )
    for held in (pinned, frozenset()):
        made = prepared(found.view, tight, held)
        assert made.size < found.view.size
        assert (wire.encode(LONG)[1:-1] in made.body) is bool(held)


def prepared(before: View, policy: Any, held: frozenset[str | int]) -> View:
    situation = Situation(stored_turns.MODEL, 200_000, 100, None, "b", "b", rejected=99, pins=held)
    steps = prepare(before, situation, policy)
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        made: View = stop.value.view
        return made


def test_undoing_a_restore_gives_the_earlier_view_to_the_byte(played: Played) -> None:
    before = view(played)
    row = keep(played)
    assert row is not None
    assert view(played).body != before.body
    undone = undo_change(
        conversation_id=played.conversation.pk, actor_id=played.user.pk, seq=row.seq
    )
    assert wire.digest(view(played).body) == wire.digest(before.body)
    assert [m.by for m in view(played).messages] == [m.by for m in before.messages]
    assert (undone.parent, undone.actor, undone.edits) == (row.parent, played.user, "[]")
    assert (undone.tokens_before, undone.tokens_after) == (row.tokens_after, row.tokens_before)
    assert list_pins(now(played)) == frozenset()
    assert now(played).tip == undone.seq == now(played).head
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert LONG not in view(played).body
    assert clean()


def test_a_restore_is_taken_back_once_and_only_at_the_end(played: Played) -> None:
    row = keep(played)
    assert row is not None
    undo = {"conversation_id": played.conversation.pk, "actor_id": played.user.pk}
    compaction = Transformation.objects.get(kind="compaction")
    with pytest.raises(ManualChangeError, match="went on"):
        undo_change(**undo, seq=compaction.seq)
    undone = undo_change(**undo, seq=row.seq)
    for seq in (row.seq, undone.seq, 999):
        with pytest.raises(ManualChangeError, match="went on"):
            undo_change(**undo, seq=seq)
    later = keep(played)
    assert later is not None
    people_and_turns.next_turn(now(played))
    with pytest.raises(ManualChangeError, match="went on"):
        undo_change(**undo, seq=later.seq)


def test_nothing_is_put_back_under_a_running_answer(played: Played) -> None:
    people_and_turns.next_turn(now(played))
    assert refused(played).code == "busy"
    assert keep(played, "msg_1") is None  # in full already, and pins change no view
    turns.request_stop(turn=now(played).turns.latest("number"))


def test_a_restore_is_not_taken_back_under_a_running_answer(played: Played) -> None:
    row = keep(played)
    assert row is not None
    turn = turns.send_prompt(conversation=now(played), text="Next", client_id=uuid4())
    Conversation.objects.filter(pk=played.conversation.pk).update(tip=row.seq)
    with pytest.raises(ManualChangeError, match="on its way"):
        undo_change(conversation_id=played.conversation.pk, actor_id=played.user.pk, seq=row.seq)
    assert turn.is_live


@pytest.mark.parametrize(
    "id",
    ["", "toolu_2", "msg_2x", "msg_99", "msg_0", "99", "0", "9" * 40, "x" * 300, "²", "msg_4 "],
)
def test_what_is_not_in_the_conversation_is_not_pinned(played: Played, id: str) -> None:
    assert refused(played, id).code == "unknown"
    assert refused(played, "toolu_1", id).code == "unknown"
    drop(played, id)
    assert not Pin.objects.exists()


def test_naming_nothing_pins_nothing(played: Played) -> None:
    with pytest.raises(ManualChangeError) as caught:
        pin_originals(conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=[])
    assert caught.value.code == "unknown"


def test_a_number_that_is_no_message_is_not_pinned(played: Played) -> None:
    seq = Transformation.objects.get(kind="compaction").seq
    assert refused(played, f"msg_{seq}").code == "unknown"


def test_pins_fill_no_more_than_their_share_of_the_window(played: Played, settings: Any) -> None:
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=20_000)
    settings.AGENTWEB_PINNED_PERCENT = 1
    error = refused(played)
    assert error.code == "full"
    assert "at most 200" in error.text
    assert "Unpin something" in error.text
    settings.AGENTWEB_PINNED_PERCENT = 30
    assert keep(played) is not None
    settings.AGENTWEB_PINNED_PERCENT = 1
    assert refused(played, "msg_1").code == "full"


def test_a_site_may_veto_a_restore(played: Played) -> None:
    def never(**_: Any) -> str:
        return "not on Sundays"

    transformation_proposed.connect(never)
    try:
        assert "not on Sundays" in refused(played).text
    finally:
        transformation_proposed.disconnect(never)


def test_a_policy_that_holds_no_longer_is_said(played: Played) -> None:
    Conversation.objects.update(policy={"input_token_budget": "many"})
    assert refused(played).code == "policy"


def test_a_result_pins_its_block_alone() -> None:
    played = stored_turns.played()
    results = Message.objects.get(kind="results")
    keep(played, f"msg_{results.seq}")
    assert list_pins(now(played)) == {results.seq}
    assert wire.encode(LONG)[1:-1] in view(played).body


def test_a_changed_pin_is_named_by_verification(played: Played) -> None:
    keep(played)
    row = Pin.objects.get()
    table = Pin._meta.db_table
    where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TRIGGER "{table}_keep_update"{where}')
        cursor.execute(f'UPDATE "{table}" SET is_pinned = %s WHERE id = %s', [False, row.pk])
    problems = list(verify_everything(Tally()))
    assert ("pin", str(row.pk)) in {(problem.table, problem.id) for problem in problems}
