"""The log: one counter, one path, one chain, whoever writes at the same time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from conversations.log import append, chain, texts
from conversations.models import (
    ApiCall,
    ApiResult,
    Blob,
    Chained,
    Conversation,
    LedgerEntry,
    Message,
    Transformation,
)
from conversations.signals import transformation_recorded
from tests.support import people_and_turns, replayed_turns, stored_turns

pytestmark = pytest.mark.django_db


def links(conversation: Conversation) -> list[Chained]:
    """Give every row of the chain in its order."""
    rows: list[Any] = []
    for kind in (Message, Transformation, ApiCall):
        rows += kind._base_manager.filter(conversation=conversation)
    for kind in (ApiResult, LedgerEntry):
        rows += kind._base_manager.filter(call__conversation=conversation)
    return sorted(rows, key=lambda row: row.link)


def recomputed(conversation: Conversation) -> str:
    """Compute the end of the chain again from the stored rows, each compared on the way."""
    rows, value = links(conversation), ""
    assert [row.link for row in rows] == list(range(1, conversation.links + 1))
    for row in rows:
        value = chain.compute_link(value, row)
        assert row.chain == value
    return value


def numbered(conversation: Conversation) -> list[tuple[int, int]]:
    """Give (number, parent) of every entry."""
    found: list[tuple[int, int]] = []
    for kind in (Message, Transformation):
        rows = kind._base_manager.filter(conversation=conversation)
        found += rows.values_list("seq", "parent")
    return sorted(found)


def test_messages_and_transformations_share_one_counter_and_one_path() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    entries = numbered(conversation)
    assert entries == [(seq, seq - 1) for seq in range(1, len(entries) + 1)]
    assert conversation.head == conversation.tip == entries[-1][0]
    assert Transformation.objects.filter(conversation=conversation).count() == 2


def test_the_chain_can_be_computed_again_from_the_stored_rows() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    assert recomputed(conversation) == conversation.chain
    kinds = {type(row).__name__ for row in links(conversation)}
    assert kinds == {"Message", "Transformation", "ApiCall", "ApiResult", "LedgerEntry"}


def test_an_append_that_is_rolled_back_leaves_no_gap() -> None:
    lease = people_and_turns.started_turn()
    with transaction.atomic():
        append.store_results(lease=lease, content="[]", estimate=1)
        transaction.set_rollback(True)
    append.store_results(lease=lease, content="[]", estimate=1)
    conversation = people_and_turns.conversation_of(lease)
    assert numbered(conversation) == [(1, 0), (2, 1)]
    assert recomputed(conversation) == conversation.chain


def test_many_messages_at_once_make_the_chain_of_one_at_a_time() -> None:
    conversation = Conversation.objects.create(
        owner=people_and_turns.person(), model=stored_turns.MODEL
    )
    with transaction.atomic():
        locked = chain.lock_conversation(conversation.pk)
        rows = [
            Message(
                conversation=locked,
                seq=seq,
                parent=seq - 1,
                kind="prompt",
                content="[]",
                estimate=1,
            )
            for seq in range(1, 6)
        ]
        locked.head = locked.tip = 5
        chain.append_rows(rows, locked)
    conversation.refresh_from_db()
    assert recomputed(conversation) == conversation.chain


def test_a_transformation_is_announced_after_its_commit_and_not_before(
    django_capture_on_commit_callbacks: Any,
) -> None:
    told: list[Transformation] = []

    def hear(transformation: Transformation, **_: Any) -> None:
        told.append(transformation)

    replayed_turns.forget()
    transformation_recorded.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            stored_turns.played()
            assert told == []
    finally:
        transformation_recorded.disconnect(hear)
    assert [row.kind for row in told] == ["compaction", "summary"]


def test_each_reduction_is_one_line_with_its_figures_and_none_of_its_words(
    django_capture_on_commit_callbacks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    replayed_turns.forget()
    lines = caplog.at_level("INFO", "agentweb.reductions")
    with lines, django_capture_on_commit_callbacks(execute=True):
        stored_turns.played(title="A secret walrus")
    found = [row.fields for row in caplog.records if row.name == "agentweb.reductions"]
    rows = Transformation.objects.order_by("seq")
    assert [fields["entry"] for fields in found] == [row.seq for row in rows]
    for fields, row in zip(found, rows, strict=True):
        assert (fields["kind"], fields["outcome"]) == (row.kind, row.outcome)
        assert (fields["figure"], fields["threshold"]) == (row.number, row.threshold)
        assert fields["tokens_before"] - fields["tokens_after"] == (
            row.tokens_before - row.tokens_after
        )
        assert "walrus" not in str(fields)


def test_a_text_is_kept_once_under_its_digest() -> None:
    first, again = texts.store_blob("the same"), texts.store_blob("the same")
    assert first == again
    assert Blob.objects.get(digest=first).text == "the same"
    assert Blob.objects.count() == 1


@pytest.mark.parametrize("text", ["a\ud7ff\U0001f600", '{"a":"\\u0000"}', "é\u2028\u202e", "1e999"])
def test_wire_text_comes_back_as_it_was_stored(text: str) -> None:
    lease = people_and_turns.started_turn()
    row = append.store_results(lease=lease, content=text, estimate=1)
    assert Message.objects.get(pk=row.pk).content == text


@pytest.mark.django_db(transaction=True)
def test_turns_of_different_conversations_write_side_by_side() -> None:
    leases = [people_and_turns.started_turn(people_and_turns.person(f"u{at}")) for at in range(8)]

    def write(at: int) -> None:
        for _ in range(5):
            append.store_results(lease=leases[at], content="[]", estimate=1)

    assert people_and_turns.failures(people_and_turns.crowd(len(leases), write)) == []
    for lease in leases:
        conversation = people_and_turns.conversation_of(lease)
        assert numbered(conversation) == [(seq, seq - 1) for seq in range(1, 7)]
        assert recomputed(conversation) == conversation.chain


@pytest.mark.django_db(transaction=True)
def test_writers_of_one_conversation_take_their_numbers_in_turn() -> None:
    lease = people_and_turns.started_turn()

    def write(_: int) -> int:
        return append.store_results(lease=lease, content="[]", estimate=1).seq

    assert sorted(map(str, people_and_turns.crowd(20, write))) == sorted(map(str, range(2, 22)))
    conversation = people_and_turns.conversation_of(lease)
    assert numbered(conversation) == [(seq, seq - 1) for seq in range(1, 22)]
    assert recomputed(conversation) == conversation.chain
