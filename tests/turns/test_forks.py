"""Forks: a new conversation that goes on from a turn, and what the model sees there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models.signals import post_save
from django.test.utils import CaptureQueriesContext

from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_conversation
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, Conversation, Message, SearchText, ToolCall
from conversations.reductions.pins import list_pins, pin_originals
from conversations.transcript import transcript
from conversations.transcript.originals import read_original
from conversations.turns.forks import fork_conversation
from conversations.turns.versions import show_version
from tests.support import people_and_turns, stored_turns
from tests.support.version_trees import (
    again,
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


def texts(conversation: Conversation) -> list[Any]:
    found = transcript.read_transcript(fresh(conversation)).turns
    return [(one.number, one.prompt_html, one.source, one.created_at) for one in found]


def test_a_fork_gives_the_model_the_same_view_to_the_byte() -> None:
    played = stored_turns.played()
    first = played.conversation
    pin_originals(conversation_id=first.pk, actor_id=played.user.pk, ids=["toolu_1"])
    copy = fork_conversation(turn=played.turn)
    assert wire.digest(view(copy).body) == wire.digest(view(first).body)
    assert read_original(copy.pk, "toolu_1") == stored_turns.LONG
    assert list_pins(copy) == {"toolu_1"}
    assert texts(copy) == texts(first)
    assert copy.title == f"{first.title} (fork)"
    assert (copy.model, copy.owner) == (first.model, first.owner)
    assert not ApiCall.objects.filter(conversation=copy).exists()
    assert ToolCall.objects.filter(turn__conversation=copy).count() == 1
    assert clean()


def test_a_fork_keeps_what_was_chosen_for_the_chat() -> None:
    played = stored_turns.played()
    chosen = {
        "instructions": "Be brief.",
        "effort": "low",
        "policy": {"preset": "classic"},
        "web_search": "alone",
        "asks_before_egress": True,
    }
    Conversation.objects.update(**chosen)
    copy = fork_conversation(turn=played.turn)
    assert Conversation.objects.filter(pk=copy.pk).values(*chosen).get() == chosen


def test_turns_are_copied_by_one_statement_however_many() -> None:
    first = talk(*["and"] * 40)
    with CaptureQueriesContext(connection) as asked:
        copy = fork_conversation(turn=turn(first, 40))
    inserts = [one for one in asked if "INSERT INTO conversations_turn " in one["sql"]]
    assert len(inserts) == 1
    assert not any('INSERT INTO "conversations_turn"' in one["sql"] for one in asked)
    same = ("number", "parent", "tip", "state", "payload_digest", "created_at", "ended_at")
    assert list(copy.turns.values(*same)) == list(first.turns.values(*same))
    assert not {*copy.turns.values_list("public_id", "client_id")} & {
        *first.turns.values_list("public_id", "client_id")
    }
    assert copy.turns.values("public_id").distinct().count() == 40


def test_tool_calls_are_copied_by_one_statement_with_all_that_is_stored_of_them() -> None:
    played = stored_turns.played()
    with CaptureQueriesContext(connection) as asked:
        copy = fork_conversation(turn=played.turn)
    assert len([one for one in asked if "conversations_toolcall" in one["sql"]]) == 1
    own = {"id", "turn", "answer"}
    same = [one.attname for one in ToolCall._meta.concrete_fields if one.name not in own]
    calls = ToolCall.objects.values("answer__seq", "turn__number", *same)
    assert list(calls.filter(turn__conversation=copy, answer__conversation=copy)) == list(
        calls.filter(turn__conversation=played.conversation)
    )


def test_both_go_on_by_themselves() -> None:
    first = talk("one", "two")
    before = view(first).body
    copy = fork_conversation(turn=turn(first, 1))
    assert shown(copy) == [1]
    say(people_and_turns.next_turn(copy, "another way"))
    again(copy, 1)
    assert shown(copy) == [3]
    assert view(first).body == before
    say(people_and_turns.next_turn(fresh(first), "three"))
    assert shown(first) == [1, 2, 3]
    assert clean()


def test_a_fork_of_a_version_has_its_path_and_the_versions_from_before_it() -> None:
    first = talk("one", "two", "three")
    edited(first, 2, "zwei")
    say(people_and_turns.next_turn(fresh(first), "drei"))
    bodies = {}
    for number in (1, 2, 3, 4, 5):
        copy = fork_conversation(turn=turn(first, number))
        bodies[number] = view(copy).body
        assert shown(copy)[-1] == number
        assert "two" in bodies[number] or number not in (2, 3)
    assert shown(copy) == [1, 4, 5]
    assert bodies[5] == view(first).body
    show_version(turn=turn(copy, 2))
    assert shown(copy) == [1, 2, 3]
    show_version(turn=turn(first, 2))
    assert view(copy).body == view(first).body == bodies[3]
    assert clean()


def test_a_running_turn_is_not_forked() -> None:
    lease = people_and_turns.next_turn(talk("one"))
    with refused("busy"):
        fork_conversation(turn=people_and_turns.turn_of(lease))
    assert shown(fork_conversation(turn=turn(people_and_turns.conversation_of(lease), 1))) == [1]


def test_a_fork_knows_what_the_last_call_said_of_its_view() -> None:
    played = stored_turns.played()
    first = load_state(played.conversation, played.conversation.model)
    assert first.report is not None
    copy = fork_conversation(turn=played.turn)
    copies = fork_conversation(turn=turn(copy, 1))
    for one in (copy, copies):
        assert load_state(one, one.model) == first
        assert load_state(one, "another").bound_to == first.bound_to
    say(people_and_turns.next_turn(copies, "on"))
    assert load_state(fresh(copies), copies.model).report != first.report


def test_a_fork_outlives_the_first_one() -> None:
    played = stored_turns.played()
    copy = fork_conversation(turn=played.turn)
    delete_conversation(conversation=played.conversation)
    Conversation.objects.filter(pk=played.conversation.pk).update(erase_at=copy.created_at)
    assert erase_conversation(conversation_id=played.conversation.pk) is not None
    assert read_original(copy.pk, "toolu_1") == stored_turns.LONG
    assert Message.objects.filter(conversation=copy).exists()
    assert load_state(fresh(copy), copy.model).report is None
    assert clean()


def test_a_copy_of_an_answer_given_again_names_the_copy_of_the_first() -> None:
    first = talk("one", "two")
    again(first, 2)
    copy = fork_conversation(turn=turn(first, 3))
    assert turn(copy, 3).retry_of == turn(copy, 2)
    assert list(copy.turns.exclude(retry_of=None)) == [turn(copy, 3)]


def test_a_copy_is_found_by_its_words() -> None:
    first = talk("walnut", "pecan")
    copy = fork_conversation(turn=turn(first, 1))
    rows = SearchText.objects.order_by("seq", "part").values_list("message__seq", "text", "words")
    found = [row for row in rows.filter(conversation=copy) if row[0]]
    assert found == list(rows.filter(conversation=first, seq__lte=copy.head, seq__gt=0))
    assert rows.filter(conversation=copy, message__conversation=copy).count() == len(found) == 2


@contextmanager
def acting_at_the_copy(act: Callable[[], object]) -> Iterator[list[Future[Any]]]:
    """Act in another connection once the copy has its row."""
    done: list[Future[Any]] = []

    def run() -> object:
        try:
            return act()
        finally:
            connection.close()

    def begin(**_: object) -> None:
        with ThreadPoolExecutor(1) as threads:
            done.append(threads.submit(run))

    post_save.connect(begin, sender=Conversation)
    try:
        yield done
    finally:
        post_save.disconnect(begin, sender=Conversation)


@pytest.mark.only_database("postgres", "SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_the_first_one_goes_on_while_it_is_copied() -> None:
    first = talk("one", "two")
    forked = turn(first, 2)
    with acting_at_the_copy(lambda: people_and_turns.next_turn(fresh(first), "three")) as done:
        copy = fork_conversation(turn=forked)
    assert done[0].result().number == 3
    assert (shown(first), shown(copy)) == ([1, 2, 3], [1, 2])
    say(people_and_turns.next_turn(copy, "on"))
    assert clean()


@pytest.mark.only_database("postgres", "SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_of_a_chat_that_is_deleted_meanwhile_no_copy_stays() -> None:
    first = talk("one", "two")
    forked = turn(first, 2)
    delete = partial(delete_conversation, conversation=fresh(first))
    with acting_at_the_copy(delete) as done, refused("deleted"):
        fork_conversation(turn=forked)
    done[0].result()
    assert Conversation.objects.get() == first
