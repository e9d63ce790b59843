"""Rows of the append-only tables are never changed or removed, whoever asks."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import ProtectedError
from django.test.utils import CaptureQueriesContext

from conversations import models
from conversations.log.chain import OWNED, lock_site_chain
from conversations.log.search_index import install_index
from conversations.log.triggers import (
    allow_erasing,
    find_missing_guards,
    install_guards,
    list_guard_verbs,
    list_guarded_models,
    list_guarded_tables,
)
from conversations.models import AppendOnly, Chained
from tests.support.environment import DATABASE

VERBS = ("update", "delete", "truncate" if DATABASE == "postgres" else "replace")
TRIGGERS = ("update", "delete", "truncate" if DATABASE == "postgres" else "insert", "place")
REFUSED = (DatabaseError, sqlite3.DatabaseError, psycopg.DatabaseError)
pytestmark = pytest.mark.django_db


def write_rows() -> list[AppendOnly]:
    """Write one row into every append-only table."""
    user = models.User.objects.create(username="u1")
    conversation = models.Conversation.objects.create(owner=user, model="claude-sonnet-5-5")
    turn = models.Turn.objects.create(conversation=conversation, number=1, payload_digest="d")
    budget = models.Budget.objects.create(user=user, limit=1)
    site = models.SiteChain.objects.get().links
    window = models.BudgetWindow.objects.create(budget=budget, starts_at=datetime.now(UTC))
    blob = models.Blob.objects.create(digest="sha256:b", text="full output")
    envelope = models.Envelope.objects.create(digest="sha256:e", text="{}")
    message = models.Message.objects.create(
        conversation=conversation, seq=1, parent=0, turn=turn, kind="answer", content="[]",
        estimate=1, link=1,
    )  # fmt: skip
    transformation = models.Transformation.objects.create(
        conversation=conversation, seq=2, parent=1, kind="compaction", outcome="applied", number=2,
        threshold=1, source="reported", edits="[]", policy="{}", tokens_before=2, tokens_after=1,
        bytes_before=2, bytes_after=1, note="", link=2,
    )  # fmt: skip
    call = models.ApiCall.objects.create(
        conversation=conversation, turn=turn, number=1, purpose="reply", model="claude-sonnet-5-5",
        envelope=envelope, tip=1, body_digest="sha256:r", body_bytes=2, estimated_tokens=1,
        binding="sha256:x", max_tokens=1, link=3,
    )  # fmt: skip
    result = models.ApiResult.objects.create(
        call=call, status="complete", cost_micros=1, cost_basis="exact", duration_ms=1, link=4
    )
    grant = models.Grant.objects.create(
        budget=budget, amount=1, reason="x", actor=user, link=site + 1
    )
    crossing = models.Crossing.objects.create(
        window=window, percent=50, spent=1, limit=2, link=site + 2
    )
    entry = models.LedgerEntry.objects.create(
        window=window, call=call, kind="settle", amount=1, link=5
    )
    pin = models.Pin.objects.create(
        conversation=conversation, tool_use_id="toolu_1", is_pinned=True, actor=user, link=6
    )
    erasure = models.Erasure.objects.create(
        owner=user, conversation=conversation.public_id, begun_at=datetime.now(UTC),
        deleted_at=datetime.now(UTC), due_at=datetime.now(UTC), messages=1, transformations=1,
        calls=1, links=1, cost_micros=1, link=site + 3,
    )  # fmt: skip
    proof = models.ErasureProof.objects.create(
        erasure=erasure, phrases=1, words=1, found=0, link=site + 9
    )
    hold = models.LegalHold.objects.create(owner=user, reason="x", actor=user, link=site + 11)
    release = models.HoldRelease.objects.create(hold=hold, reason="x", actor=user, link=site + 12)
    look = models.Impersonation.objects.create(
        person=user, actor=user, reason="x", until=datetime.now(UTC), link=site + 13
    )
    look_end = models.ImpersonationEnd.objects.create(impersonation=look, link=site + 14)
    moved = models.DatabaseMove.objects.create(
        source="sqlite", target="postgresql", rows=1, digest="x", begun_at=datetime.now(UTC),
        link=site + 15,
    )  # fmt: skip
    recorded = models.MoneyRecord.objects.create(
        table="budget", key=budget.pk, content="{}", link=site + 16
    )
    booked = models.BookedDifference.objects.create(
        day=date(2026, 11, 20), unit="money", amount=1, windows=0, reason="x", link=site + 17
    )
    server = models.McpServer.objects.create(name="demo", transport="http", url="https://m.example")
    decided = models.McpDecision.objects.create(
        server=server, kind="added", actor=user, link=site + 4
    )
    invited = models.Invitation.objects.create(digest="x", expires_at=datetime.now(UTC))
    invitation = models.InvitationDecision.objects.create(
        invitation=invited, kind="made", link=site + 10
    )
    used = models.ToolCall.objects.create(
        turn=turn, answer=message, position=0, tool_use_id="toolu_1", name="x", input="{}",
        effect="write",
    )  # fmt: skip
    question = models.Approval.objects.create(
        conversation=conversation, call=used, arguments_digest="sha256:a", reason="write",
        expires_at=datetime.now(UTC), link=7,
    )  # fmt: skip
    decision = models.Decision.objects.create(
        conversation=conversation, approval=question, verdict="once", actor=user, link=8
    )
    connection.check_constraints()  # TRUNCATE waits for the checks of foreign keys
    return [blob, envelope, message, transformation, call, result, entry, pin, erasure,
            look_end, look, proof, release, hold, grant, crossing, decided, question, decision,
            invitation, moved, recorded, booked]  # fmt: skip


def sentence(verb: str, row: AppendOnly) -> str:
    """Write the SQL that would lose what the row says."""
    table, key = row._meta.db_table, row._meta.pk.column  # type: ignore[union-attr]
    where = f"WHERE \"{key}\" = '{row.pk}'"
    return {
        "update": f'UPDATE "{table}" SET "{key}" = "{key}" {where}',
        "delete": f'DELETE FROM "{table}" {where}',
        "truncate": f'TRUNCATE "{table}" CASCADE',
        "replace": f'INSERT OR REPLACE INTO "{table}" SELECT * FROM "{table}" {where}',
    }[verb]


def refused(do: Callable[[], Any]) -> None:
    with pytest.raises(REFUSED, match="is append-only"), transaction.atomic():
        do()


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_every_guarded_table_is_tried_here() -> None:
    assert sorted(row._meta.db_table for row in write_rows()) == list_guarded_tables()


@pytest.mark.parametrize("verb", VERBS)
def test_sql_is_refused_on_every_guarded_table(verb: str) -> None:
    for row in write_rows():
        if verb == "replace" and not isinstance(row, Chained):
            # A text that is there already stays as it is.
            execute(sentence(verb, row))
        else:
            refused(lambda row=row: execute(sentence(verb, row)))
        assert type(row)._base_manager.filter(pk=row.pk).exists()


def test_query_sets_are_refused_on_every_guarded_table() -> None:
    for row in write_rows():
        rows = type(row)._base_manager.filter(pk=row.pk)
        key = row._meta.pk.attname  # type: ignore[union-attr]
        refused(lambda rows=rows, key=key, row=row: rows.update(**{key: row.pk}))
        refused(lambda rows=rows: rows._raw_delete(rows.db))
        assert rows.exists()


def test_models_are_refused_before_the_database_is_asked() -> None:
    for row in write_rows():
        again = type(row)._base_manager.get(pk=row.pk)
        for act in (again.save, again.delete):
            with pytest.raises(TypeError, match="append-only"):
                act()


def test_deleting_a_query_set_with_its_cascades_is_refused() -> None:
    for row in write_rows():
        with pytest.raises((*REFUSED, ProtectedError)), transaction.atomic():
            type(row)._base_manager.filter(pk=row.pk).delete()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", VERBS)
def test_a_connection_of_another_program_is_refused(verb: str) -> None:
    rows = write_rows()
    name = connection.settings_dict["NAME"]
    if DATABASE == "sqlite":
        program: Any = sqlite3.connect(name, timeout=20)
    else:
        host, port = connection.settings_dict["HOST"], connection.settings_dict["PORT"]
        program = psycopg.connect(host=host, port=port, dbname=name, user="agentweb")
    for row in rows:
        # A program without our function is refused by its absence.
        with pytest.raises(REFUSED, match=r"is append-only|no such function"):
            program.execute(sentence(verb, row))
        program.rollback()
    program.close()
    assert all(type(row)._base_manager.filter(pk=row.pk).exists() for row in rows)


def test_erasing_lets_rows_be_erased_and_never_changed() -> None:
    for row in reversed(write_rows()):
        with allow_erasing():
            refused(lambda row=row: execute(sentence("update", row)))
    blob = models.Blob.objects.create(digest="sha256:other", text="of somebody who left")
    with allow_erasing():
        execute(sentence("delete", blob))
    assert not models.Blob.objects.filter(pk=blob.pk).exists()


def test_erasing_ends_after_an_error() -> None:
    (blob, *_) = write_rows()
    with pytest.raises(KeyError), allow_erasing():
        raise KeyError
    refused(lambda: execute(sentence("delete", blob)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", TRIGGERS)
def test_a_dropped_trigger_is_missed_and_comes_back_with_migrate(verb: str) -> None:
    assert find_missing_guards() == []
    dropped = []
    for kind in list_guarded_models():
        table, where = kind._meta.db_table, ""
        if verb not in list_guard_verbs(kind):
            continue
        if DATABASE == "postgres":
            where = f' ON "{table}"'
        execute(f'DROP TRIGGER "{table}_keep_{verb}"{where}')
        dropped.append(table)
        assert sorted(find_missing_guards()) == sorted(dropped)
    call_command("migrate", verbosity=0)
    assert find_missing_guards() == []


@pytest.mark.django_db(transaction=True)
def test_a_table_that_a_migration_has_not_made_yet_leaves_the_others_guarded() -> None:
    table = models.Erasure._meta.db_table
    execute(f'ALTER TABLE "{table}" RENAME TO "{table}_later"')
    try:
        install_guards()
        assert set(find_missing_guards()) <= {table}
    finally:
        execute(f'ALTER TABLE "{table}_later" RENAME TO "{table}"')
        install_guards()
    assert find_missing_guards() == []


@pytest.mark.django_db(transaction=True)
def test_the_flush_after_a_test_may_erase() -> None:
    write_rows()


@pytest.mark.django_db(transaction=True)
def test_the_catalogue_outlives_the_flush() -> None:
    assert not models.Blob.objects.exists()
    assert models.ApiModel.objects.filter(pk="claude-sonnet-5-5").exists()
    assert models.ModelPrice.objects.filter(model="claude-sonnet-5-5").count() >= 5


def test_rows_put_in_past_the_services_are_refused_where_the_chain_has_been() -> None:
    for row in write_rows():
        if not isinstance(row, Chained):
            continue
        kind = type(row)
        with transaction.atomic():
            end: models.Conversation | models.SiteChain = lock_site_chain()
            if kind in OWNED and getattr(row, "call_id", 1) is not None:
                end = models.Conversation.objects.get()
            end.links = row.link
            end.save()
        copy = kind(
            **{one.attname: getattr(row, one.attname) for one in kind._meta.concrete_fields}
        )
        copy.pk = None
        refused(lambda kind=kind, copy=copy: kind._base_manager.bulk_create([copy]))
        refused(lambda kind=kind, copy=copy: kind._base_manager.bulk_create([copy] * 2, 1))


@pytest.mark.only_database("sqlite", "SQLite alone replaces rows")
@pytest.mark.parametrize("pragma", ["ON", "OFF"])
def test_sqlite_replaces_nothing_whatever_its_pragmas(pragma: str) -> None:
    for row in write_rows():
        table, key = row._meta.db_table, row._meta.pk.column  # type: ignore[union-attr]
        before = type(row)._base_manager.filter(pk=row.pk).values().get()
        execute(f"PRAGMA recursive_triggers = {pragma}")
        try:
            with contextlib.suppress(DatabaseError), transaction.atomic():
                execute(sentence("replace", row))
            refused(
                lambda table=table, key=key: execute(
                    f'UPDATE OR REPLACE "{table}" SET "{key}" = "{key}"'
                )
            )
        finally:
            execute("PRAGMA recursive_triggers = ON")
        assert type(row)._base_manager.filter(pk=row.pk).values().get() == before


@pytest.mark.only_database("sqlite", "SQLite alone replaces rows")
def test_sqlite_lets_no_other_row_take_a_unique_place() -> None:
    rows = write_rows()
    message = next(row for row in rows if isinstance(row, models.Message))
    execute("PRAGMA recursive_triggers = OFF")
    try:
        columns = "conversation_id, seq, parent, kind, estimate, created_at, chain"
        refused(
            lambda: execute(
                f"INSERT OR REPLACE INTO conversations_message ({columns}, link, content)"
                f" SELECT {columns}, 99, 'other' FROM conversations_message"
            )
        )
    finally:
        execute("PRAGMA recursive_triggers = ON")
    message.refresh_from_db()
    assert message.content == "[]"


def list_changes(queries: CaptureQueriesContext) -> list[str]:
    words = ("CREATE", "DROP", "ALTER", "GRANT", "LOCK")
    return [query["sql"] for query in queries if query["sql"].lstrip().upper().startswith(words)]


@pytest.mark.parametrize("install", [install_guards, install_index])
def test_what_is_there_is_left_alone(install: Callable[[], None]) -> None:
    """A start that has nothing to migrate takes no lock on a table that is in use."""
    with CaptureQueriesContext(connection) as queries:
        install()
    assert list_changes(queries) == []


@pytest.mark.parametrize("verb", TRIGGERS)
def test_a_trigger_in_another_form_is_put_right(verb: str) -> None:
    table = models.Message._meta.db_table
    name = f"{table}_keep_{verb}"
    with connection.cursor() as cursor:
        if DATABASE == "postgres":
            cursor.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER "{name}"')
        else:
            cursor.execute(f'DROP TRIGGER "{name}"')
            cursor.execute(
                f'CREATE TRIGGER "{name}" BEFORE UPDATE ON "{table}" BEGIN SELECT 1; END'
            )
    with CaptureQueriesContext(connection) as queries:
        install_guards()
    assert [sql for sql in list_changes(queries) if name not in sql] == []
    assert len(list_changes(queries)) == 2
    assert find_missing_guards() == []
    with CaptureQueriesContext(connection) as queries:
        install_guards()
    assert list_changes(queries) == []
