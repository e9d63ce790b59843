"""Versions: another answer, another wording, and which is shown; nothing is changed or lost."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from conversations.agent.ports import Finish
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.log.path import read_path
from conversations.log.tree import filter_path_turns, find_newest_below
from conversations.models import Message, Turn
from conversations.reductions.manual_changes import undo_change
from conversations.reductions.pins import pin_originals
from conversations.transcript import transcript
from conversations.turns import drafts, turns
from conversations.turns.prompts import Prompt, SendError, lock_for_send, open_turn
from conversations.turns.versions import edit_prompt, regenerate_answer, show_version
from tests.support import people_and_turns, stored_turns
from tests.support.version_trees import (
    again,
    answered,
    clean,
    edited,
    fresh,
    refused,
    say,
    shown,
    talk,
    turn,
    view,
)

pytestmark = pytest.mark.django_db


# Making one.


def test_another_answer_is_a_turn_beside_the_first_one() -> None:
    conversation = talk("one", "two")
    before = view(conversation, turn(conversation, 1).messages.latest("seq").seq).body
    second = turn(conversation, 2)
    new = regenerate_answer(turn=second)
    prompt, old = new.messages.get(), second.messages.get(kind="prompt")
    assert (new.number, new.parent, new.retry_of_id) == (3, 1, second.pk)
    assert (prompt.content, prompt.parent) == (old.content, old.parent)
    assert fresh(conversation).leaf == 3
    assert before[:-1] in view(conversation).body
    answered(new)
    assert shown(conversation) == [1, 3]
    assert "Answer of turn 2" not in view(conversation).body
    assert clean()


def test_asked_twice_with_one_id_it_is_one_version() -> None:
    conversation = talk("one", "two")
    name = uuid4()
    first = regenerate_answer(turn=turn(conversation, 2), client_id=name)
    assert regenerate_answer(turn=turn(conversation, 2), client_id=name).pk == first.pk
    answered(first)
    assert regenerate_answer(turn=turn(conversation, 2), client_id=name).pk == first.pk
    assert conversation.turns.count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_all_get_the_same_version() -> None:
    conversation = talk("one", "two")
    second = turn(conversation, 2)
    (shape,) = [one for one in transcript.read_transcript(conversation).turns if one.number == 2]
    found = people_and_turns.crowd(
        10, lambda _: regenerate_answer(turn=second, client_id=shape.next_id).pk
    )
    assert people_and_turns.failures(found) == []
    assert len(set(map(str, found))) == 1
    assert conversation.turns.count() == 3


def test_every_version_can_have_further_ones() -> None:
    conversation = talk("one", "two")
    for number in (2, 3, 2, 2):
        again(conversation, number)
    assert [one.parent for one in conversation.turns.order_by("number")] == [0, 1, 1, 1, 1, 1]
    (_, last) = transcript.read_transcript(fresh(conversation)).turns
    assert last.versions is not None
    assert (last.versions.position, last.versions.count) == (5, 5)
    assert (last.versions.previous, last.versions.next) == (5, None)


def test_an_edited_prompt_says_something_else_and_what_followed_stays() -> None:
    conversation = talk("one", "two", "three")
    old = view(conversation).body
    new = edited(conversation, 1, "uno")
    assert (new.number, new.parent, new.retry_of) == (4, 0, None)
    assert shown(conversation) == [4]
    assert "three" not in view(conversation).body
    show_version(turn=turn(conversation, 1))
    assert shown(conversation) == [1, 2, 3]
    assert view(conversation).body == old
    assert clean()


def test_an_edit_keeps_the_other_blocks_to_the_byte_unless_they_are_taken_out() -> None:
    image = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}'
    other = image.replace("AA", "BB")
    content = f'[{image},{{"type":"text","text":"a"}},{other},{{"type":"text","text":"b"}}]'
    conversation = talk("one")
    with transaction.atomic():
        first = open_turn(lock_for_send(conversation), Prompt(content, uuid4()))
    answered(first)
    stored = first.messages.get(kind="prompt").content
    one, _, two, _ = wire.split(stored)
    text = '{"type":"text","text":"c"}'
    new = answered(edit_prompt(turn=first, text="c", client_id=uuid4()))
    assert wire.split(new.messages.get(kind="prompt").content) == [one, text, two]
    new = answered(edit_prompt(turn=first, text="c", client_id=uuid4(), keep=[2]))
    assert wire.split(new.messages.get(kind="prompt").content) == [text, two]
    new = answered(edit_prompt(turn=first, text=" ", client_id=uuid4(), keep=[0]))
    assert wire.split(new.messages.get(kind="prompt").content) == [one]
    with refused("empty"):
        edit_prompt(turn=first, text=" ", client_id=uuid4(), keep=[])


def test_what_was_said_by_half_is_not_in_the_context_of_its_retry() -> None:
    conversation = talk("one")
    lease = people_and_turns.next_turn(conversation, "two")
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="The first half", thinking="")
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "cut", "It was cut."))
    assert "The first half" in view(conversation).body
    again(conversation, 2)
    assert "The first half" not in view(conversation).body
    assert shown(conversation) == [1, 3]
    assert clean()


def test_a_version_is_refused_under_an_answer_and_in_the_trash() -> None:
    conversation = talk("one", "two")
    running = turns.send_prompt(conversation=conversation, text="three", client_id=uuid4())
    before = people_and_turns.everything()
    for number in (1, 2, 3):
        with refused("busy"):
            regenerate_answer(turn=turn(conversation, number))
        with refused("busy"):
            edit_prompt(turn=turn(conversation, number), text="x", client_id=uuid4())
    assert people_and_turns.everything() == before
    answered(running)
    delete_conversation(conversation=conversation)
    with refused("deleted"):
        regenerate_answer(turn=turn(conversation, 2))


def test_the_cap_on_live_turns_is_that_of_versions_too(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 1
    conversation = talk("one")
    people_and_turns.queued(conversation.owner)
    before = people_and_turns.everything()
    with refused("too_many"):
        regenerate_answer(turn=turn(conversation, 1))
    assert people_and_turns.everything() == before


# Choosing one.


def test_a_version_comes_back_with_what_followed_it() -> None:
    conversation = talk("one", "two", "three")
    bodies = {3: view(conversation).body}
    edited(conversation, 2, "zwei")
    say(people_and_turns.next_turn(fresh(conversation), "drei"))
    bodies[5] = view(conversation).body
    for number, end, path_ in ((2, 3, [1, 2, 3]), (4, 5, [1, 4, 5])) * 2:
        leaf = show_version(turn=turn(conversation, number))
        assert leaf.number == fresh(conversation).leaf == end
        assert shown(conversation) == path_
        assert view(conversation).body == bodies[end]
    assert clean()


def test_the_path_that_is_shown_is_shown_again_without_a_change() -> None:
    conversation = talk("one", "two")
    before = people_and_turns.everything()
    assert show_version(turn=turn(conversation, 1)).number == 2
    assert people_and_turns.everything() == before


def test_a_talk_goes_on_where_it_is_shown() -> None:
    conversation = talk("one", "two")
    again(conversation, 2)
    show_version(turn=turn(conversation, 2))
    say(people_and_turns.next_turn(fresh(conversation), "on"))
    assert shown(conversation) == [1, 2, 4]
    assert "Answer of turn 2" in view(conversation).body
    assert "Answer of turn 3" not in view(conversation).body
    assert clean()


def test_no_path_is_left_under_an_answer() -> None:
    conversation = talk("one", "two")
    again(conversation, 2)
    turns.send_prompt(conversation=conversation, text="on", client_id=uuid4())
    before = people_and_turns.everything()
    with pytest.raises(SendError, match="stop it first") as caught:
        show_version(turn=turn(conversation, 2))
    assert caught.value.code == "busy"
    assert people_and_turns.everything() == before


def test_waiting_messages_stay_behind_the_last_turn_and_hold_the_path() -> None:
    conversation = talk("one", "two")
    lease = people_and_turns.next_turn(conversation, "three")
    turns.send_prompt(conversation=conversation, text="later", client_id=uuid4())
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "cut", "It was cut."))
    for act in (
        lambda: regenerate_answer(turn=turn(conversation, 2)),
        lambda: edit_prompt(turn=turn(conversation, 1), text="x", client_id=uuid4()),
    ):
        with refused("queued"):
            act()
    new = regenerate_answer(turn=turn(conversation, 3))
    lease = people_and_turns.claimed(new)
    stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    following = turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    assert following is not None
    assert (following.number, following.parent) == (5, 4)
    answered(following)
    assert shown(conversation) == [1, 2, 4, 5]


def test_a_version_never_takes_the_id_of_a_message_that_waits() -> None:
    conversation = talk("one")
    lease = people_and_turns.next_turn(conversation, "two")
    name = uuid4()
    turns.send_prompt(conversation=conversation, text="later", client_id=name)
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "internal", ""))
    with refused("reused_id"):
        edit_prompt(turn=turn(conversation, 2), text="TWO", client_id=name)


def test_a_restore_and_its_undo_belong_to_their_path() -> None:
    played = stored_turns.played()
    conversation, user = played.conversation, played.user
    plain = view(conversation).body
    put = pin_originals(conversation_id=conversation.pk, actor_id=user.pk, ids=["toolu_1"])
    assert put is not None
    full = view(conversation).body
    assert full != plain
    again(conversation, 1)
    show_version(turn=turn(conversation, 1))
    assert view(conversation).body == full
    undo_change(conversation_id=conversation.pk, actor_id=user.pk, seq=put.seq)
    assert view(conversation).body == plain
    show_version(turn=turn(conversation, 2))
    assert "Answer of turn 2" in view(conversation).body
    show_version(turn=turn(conversation, 1))
    assert view(conversation).body == plain
    # What a person changes is written to the last turn of the shown path.
    row = pin_originals(conversation_id=conversation.pk, actor_id=user.pk, ids=["toolu_1"])
    assert row is not None
    assert row.turn == played.turn
    assert clean()


def test_a_path_that_was_never_left_ends_with_its_last_entry() -> None:
    played = stored_turns.played()
    conversation = played.conversation
    body = view(conversation).body
    again(conversation, 1)
    Turn.objects.filter(pk=played.turn.pk).update(tip=0)
    show_version(turn=turn(conversation, 1))
    assert view(conversation).body == body


# However it is used.


def test_whatever_is_done_every_path_stays_what_it_was() -> None:
    """Play a long mixed game; each path's view is the same whenever it is shown."""
    conversation = talk("start")
    bodies: dict[int, str] = {}
    names = count()
    for step_ in (1, 5, 2, 7, 3, 1, 9, 4, 2, 6, 8, 5, 3, 7, 1, 2):
        numbers = list(conversation.turns.values_list("number", flat=True))
        goal = turn(conversation, numbers[step_ % len(numbers)])
        match step_ % 4:
            case 0:
                again(conversation, goal.number)
            case 1:
                edited(conversation, goal.number, f"edited {next(names)}")
            case 2:
                show_version(turn=goal)
            case 3:
                say(people_and_turns.next_turn(fresh(conversation), f"sent {next(names)}"))
        found = fresh(conversation)
        body = view(found).body
        assert bodies.setdefault(found.leaf, body) == body
        numbers = [one.number for one in filter_path_turns(found).order_by("number")]
        on_path = set(
            Message.objects.filter(
                conversation=found, seq__in=[entry.seq for entry in read_path(found)]
            ).values_list("turn__number", flat=True)
        )
        assert on_path == set(numbers)
    for leaf, body in bodies.items():
        if find_newest_below(conversation, leaf) == leaf:
            show_version(turn=turn(conversation, leaf))
            assert view(conversation).body == body
    assert clean()
