"""Rows by prepared statements are those that the ORM reads and writes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.forms.models import model_to_dict

from conversations.library.access import load_conversation
from conversations.log.chain import lock_conversation
from conversations.log.leases import hold_lease
from conversations.log.prepared_rows import read_rows, shape_of
from conversations.models import ApiCall, ApiResult, Conversation, Message, Turn
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db
READ = (Conversation, Turn, Message, ApiCall, ApiResult)


@pytest.mark.parametrize("model", READ)
def test_a_row_is_read_as_the_orm_reads_it(model: type[Turn]) -> None:
    people_and_turns.answered(people_and_turns.started_turn())
    wanted, shape = model.objects.get(**{} if model is not Message else {"seq": 1}), shape_of(model)
    statement = f"SELECT {shape.columns('t')} FROM {model._meta.db_table} t WHERE t.id = %s"
    (found,) = read_rows(shape, statement, [wanted.pk])
    assert found == wanted
    for field in model._meta.concrete_fields:
        assert getattr(found, field.attname) == getattr(wanted, field.attname)
    assert not found._state.adding


def test_a_row_is_inserted_once_and_as_the_orm_inserts_it() -> None:
    person = people_and_turns.person()
    row = Conversation(owner=person, model="m", policy={"a": [1]}, title="ä")
    shape_of(Conversation).insert(row)
    stored = Conversation.objects.get()
    assert (stored.pk, model_to_dict(stored)) == (row.pk, model_to_dict(row))
    assert (stored.public_id, stored.created_at) == (row.public_id, row.created_at)
    with pytest.raises(TypeError, match="stored already"):
        shape_of(Conversation).insert(row)


def test_a_column_left_out_is_read_when_it_is_asked_for() -> None:
    people_and_turns.answered(people_and_turns.started_turn())
    shape = shape_of(ApiResult, "usage")
    (found,) = read_rows(shape, f"SELECT {shape.columns()} FROM {ApiResult._meta.db_table}", [])
    assert found.get_deferred_fields() == {"usage"}
    assert found.usage == ApiResult.objects.get().usage


def test_a_conversation_that_is_gone_is_named() -> None:
    for read in (load_conversation, lock_conversation):
        with pytest.raises(Conversation.DoesNotExist, match="conversation 4711"):
            read(4711)


def test_a_lease_is_renewed_by_the_clock_of_the_database() -> None:
    lease = people_and_turns.started_turn()
    before = Turn.objects.get()
    held = hold_lease(lease)
    stored = Turn.objects.get()
    assert (held.lease_until, held.state) == (stored.lease_until, "running")
    assert before.lease_until is not None
    assert stored.lease_until is not None
    assert stored.lease_until >= before.lease_until
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM conversations_turn WHERE lease_until > CURRENT_TIMESTAMP"
        )
        assert cursor.fetchone() == (1,)
