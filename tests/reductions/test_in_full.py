"""Sending in full is a person's choice: on record, remembered, and ended by itself."""

from __future__ import annotations

import pytest

from conversations.context.policy.policy import PRESETS
from conversations.context.view import wire
from conversations.inspector.current_context import read_outline
from conversations.models import Conversation
from conversations.reductions.conversation_settings import read_job_facts
from conversations.reductions.in_full import (
    FullChoice,
    choose_in_full,
    find_next_turn,
    is_in_full,
)
from conversations.reductions.manual_changes import compact_now
from conversations.reductions.record_change import ManualChangeError
from conversations.transcript.meter import read_meter
from conversations.turns.forks import fork_conversation
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import clean, digest, now, talk, who
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db


@pytest.fixture
def played() -> Played:
    return stored_turns.played()


def choose(played: Played, choice: FullChoice) -> bool:
    return choose_in_full(choice=choice, **who(played)) is not None


def is_full(played: Played, turn: int) -> bool:
    return read_job_facts(played.conversation.pk, turn).policy.is_in_full


def test_once_holds_for_the_next_turn_alone(played: Played) -> None:
    before = digest(played)
    assert choose(played, "full_once")
    assert not choose(played, "full_once")
    assert [is_full(played, turn) for turn in (0, 1, 2, 3)] == [False, False, True, False]
    # What a request would carry is the same: only what may be done to it has changed.
    assert digest(played) == before
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert not is_full(played, 3)
    assert not choose(played, "full_never")


def test_always_is_remembered_switched_off_and_goes_with_a_fork(played: Played) -> None:
    assert choose(played, "full_always")
    assert [is_full(played, turn) for turn in (2, 3, 9)] == [True, True, True]
    copy = fork_conversation(turn=played.turn)
    assert copy.in_full_always
    assert choose(played, "full_never")
    assert not choose(played, "full_never")
    assert not is_full(played, 2)


def test_once_goes_with_a_fork_that_it_is_the_next_turn_of(played: Played) -> None:
    assert choose(played, "full_once")
    for _ in range(2):
        copy = fork_conversation(turn=played.turn)
        assert is_in_full(copy, find_next_turn(copy))
        # What the first conversation chooses for later turns says nothing of the copy.
        people_and_turns.answered(people_and_turns.next_turn(now(played)))
        assert choose(played, "full_once")
    last = now(played).turns.latest("number")
    assert fork_conversation(turn=last).in_full_turn == last.number + 1
    assert choose(played, "full_never")
    assert fork_conversation(turn=last).in_full_turn == 0
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert fork_conversation(turn=now(played).turns.latest("number")).in_full_turn == 0


def test_what_comes_next_is_foretold_by_the_choice(played: Played) -> None:
    def marks() -> list[tuple[int, ...]]:
        found = read_outline(now(played))
        assert found is not None
        ahead = tuple(step.tokens for step in found.steps if step.tokens)
        return [ahead, tuple(tick.tokens for tick in read_meter(now(played)).ticks)]

    usual = marks()
    room = (PRESETS["adaptive"].room(1_000_000),)
    assert usual[0][0] == 100_000
    assert choose(played, "full_always")
    assert marks() == [room, room]
    assert choose(played, "full_never")
    assert marks() == usual
    assert choose(played, "full_once")
    assert marks() == [room, room]
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert marks() == usual


def test_each_choice_is_an_entry_of_the_log_with_its_actor(played: Played) -> None:
    for choice in ("full_once", "full_always", "full_never"):
        choose(played, choice)  # type: ignore[arg-type]
    rows = played.conversation.transformations.exclude(actor=None).order_by("seq")
    assert [row.setting for row in rows] == ["full_once", "full_always", "full_never"]
    assert {row.actor_id for row in rows} == {played.user.pk}
    assert {(row.edits, row.tokens_before - row.tokens_after) for row in rows} == {("[]", 0)}
    assert rows[0].note == "The next message is sent in full"


def test_while_an_answer_is_on_its_way_nothing_is_chosen(played: Played) -> None:
    people_and_turns.next_turn(now(played))
    with pytest.raises(ManualChangeError, match="on its way"):
        choose(played, "full_always")
    assert not Conversation.objects.get().in_full_always


def test_what_was_chosen_is_in_the_record_of_the_policy(played: Played) -> None:
    choose(played, "full_always")
    choose(played, "full_never")
    talk(played)
    row = compact_now(wanted="results", digest=None, **who(played))
    assert row.actor_id == played.user.pk
    assert wire.decode(row.policy)["is_in_full"] is False
    with pytest.raises(ManualChangeError) as refused:
        compact_now(wanted="results", digest=None, **who(played))
    assert refused.value.code == "nothing"
    talk(played, 1)
    assert clean()
