"""Whoever may write everything is still found out: every column and row of every append-only table.

The cases come from the models, so that no table and no column can be forgotten.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from conversations.audit.verify import Problem, Tally, verify_everything
from conversations.budgets.grants import correct_window
from conversations.library.impersonations import end_impersonation
from conversations.log.chain import append_row, append_rows, lock_conversation, lock_site_chain
from conversations.log.legal_holds import release_hold
from conversations.log.triggers import list_guard_verbs, list_guarded_models
from conversations.models import (
    AppendOnly,
    Approval,
    Blob,
    BookedDifference,
    BudgetWindow,
    Chained,
    Conversation,
    Crossing,
    DatabaseMove,
    Decision,
    Envelope,
    Erasure,
    ErasureProof,
    Grant,
    Impersonation,
    Invitation,
    InvitationDecision,
    LedgerEntry,
    LegalHold,
    McpDecision,
    McpServer,
    Pin,
    ToolCall,
    User,
)
from tests.support import people_and_turns, stored_turns
from tests.support.environment import DATABASE

pytestmark = pytest.mark.django_db
KINDS = list_guarded_models()
#: Where a row stands in its chain is its name; the key of a row nothing names says nothing.
COLUMNS: list[tuple[Any, str, str]] = [
    (kind, field.column, field.attname)
    for kind in KINDS
    for field in kind._meta.concrete_fields
    if not field.primary_key or kind in (Blob, Envelope)
]
#: A changed value is read back alike by both databases: PostgreSQL has every fourth.
COLUMNS_HERE = COLUMNS if DATABASE == "sqlite" else COLUMNS[::4]


@pytest.fixture
def world() -> None:
    """Give every table more than one row in one chain, and take away what guards them."""
    user, now = people_and_turns.person(), timezone.now()
    places = [stored_turns.played("ada", title=f"Read {name}").conversation for name in "ab"]
    for at, place in enumerate(places):
        call = ToolCall.objects.get(turn__conversation=place)
        rows: list[Chained] = [
            Approval(
                conversation=place, call=call, arguments_digest="sha256:a", reason="write",
                expires_at=now,
            ),
            Pin(conversation=place, tool_use_id=f"toolu_{at}", is_pinned=True, actor=user),
            Pin(conversation=place, tool_use_id=f"toolu_{at}", is_pinned=False, actor=user),
        ]  # fmt: skip
        with transaction.atomic():
            for row in rows:
                append_row(row, end := lock_conversation(place.pk))
            decision = Decision(conversation=place, approval=rows[0], verdict="once", actor=user)
            append_row(decision, end)
    write_site(user, now)
    assert list(verify_everything(Tally())) == []
    unguard()


def write_site(user: User, now: dt.datetime) -> None:
    window = BudgetWindow.objects.get()
    server = McpServer.objects.create(name="demo", transport="http", url="https://m.example")
    invited = Invitation.objects.create(digest="x", expires_at=now)
    erasure: dict[str, Any] = {"messages": 1, "transformations": 1, "calls": 1, "links": 1}
    erasure |= {"begun_at": now, "deleted_at": now, "due_at": now, "cost_micros": 1}
    for at in (1, 2, 3):
        correct_window(window_id=window.pk, amount=at, reason="by hand", actor=user)
        with transaction.atomic():
            erased = Erasure(owner=user, conversation=uuid4(), usage=[{"day": str(at)}], **erasure)
            append_row(erased, lock_site_chain())
            append_rows(
                [
                    Grant(budget=window.budget, amount=at, reason="a trial", form=uuid4()),
                    Crossing(window=window, percent=at, spent=1, limit=2),
                    InvitationDecision(invitation=invited, kind="made", note="A group"),
                    McpDecision(server=server, kind="added", definition="{}", digest="x"),
                    ErasureProof(
                        erasure=erased, phrases=at, words=1, found=0, places=[], backup="kept.tar"
                    ),
                    hold := LegalHold(owner=user, reason="a case", actor=user),
                    look := Impersonation(
                        person=user, actor=user, reason="a case", until=timezone.now()
                    ),
                    DatabaseMove(
                        source="sqlite", target="postgresql", rows=at, digest="x", begun_at=now
                    ),
                    BookedDifference(
                        day=now.date(), model="x", unit="money", amount=at, windows=0, reason="x"
                    ),
                ],
                lock_site_chain(),
            )
        release_hold(hold_id=hold.pk, actor_id=user.pk, reason="closed")
        end_impersonation(key=look.pk)


def unguard() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for kind in KINDS:
            table, where = kind._meta.db_table, ""
            if connection.vendor == "postgresql":
                where = f' ON "{table}"'
                for one in kind._meta.constraints:
                    if isinstance(one, models.CheckConstraint):
                        cursor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{one.name}"')
            for verb in list_guard_verbs(kind):
                cursor.execute(f'DROP TRIGGER "{table}_keep_{verb}"{where}')


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
    yield
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = OFF")


@contextmanager
def undone() -> Iterator[None]:
    """Take back what was done to the record; what a constraint refuses was not done."""
    with suppress(IntegrityError), transaction.atomic():
        yield
        transaction.set_rollback(True)


def is_named(row: AppendOnly) -> bool:
    """Say whether verification names the row, or the link where it stood."""
    names = {(str(row._meta.model_name), str(row.pk))}
    if isinstance(row, Chained):
        names.add(("link", str(row.link)))
    return any((found.table, found.id) in names for found in verified())


def verified() -> Iterator[Problem]:
    return verify_everything(Tally())


def rows_of(kind: type[AppendOnly]) -> list[Any]:
    rows = list(kind._base_manager.order_by("pk"))
    return [rows[0], rows[len(rows) // 2], rows[-1]]


def changed(kind: type[AppendOnly], column: str, row: Any) -> Any:
    """Give the column's value with one byte or one step of difference."""
    field = next(one for one in kind._meta.concrete_fields if one.column == column)
    value = getattr(row, field.attname)
    match field:
        case models.BooleanField():
            return not value
        case models.DateTimeField():
            return (value or timezone.now()) + dt.timedelta(microseconds=1)
        case models.DateField():
            return value + dt.timedelta(days=1)
        case models.UUIDField():
            return uuid4()
        case models.JSONField():
            return [*value, 1]
        case models.CharField() | models.TextField():
            return f"{value[:-1]}{'~' if value[-1:] != '~' else '-'}"
        case models.ForeignKey() if isinstance(field.target_field, models.CharField):
            return f"{value or ''}~"
        case _:
            return (value or 0) + 1


@pytest.mark.usefixtures("world")
def test_one_changed_byte_in_any_column_of_any_table_is_named() -> None:
    missed = []
    for kind, column, name in COLUMNS_HERE:
        row = rows_of(kind)[1]
        with undone():
            key, value = row.pk, changed(kind, column, row)
            assert kind._base_manager.filter(pk=key).update(**{name: value}) == 1
            if name == row._meta.pk.attname:
                row.pk = value
            if not is_named(row):
                missed.append(f"{kind.__name__}.{column}")
    assert missed == []


@pytest.mark.usefixtures("world")
def test_a_deleted_first_middle_or_last_row_of_any_table_is_missed() -> None:
    for kind in KINDS:
        for at, row in enumerate(rows_of(kind)):
            with undone():
                rows = kind._base_manager.filter(pk=row.pk)
                rows._raw_delete(rows.db)
                found = is_named(row) if isinstance(row, Chained) else any(verified())
                assert found, (kind, at)


@pytest.mark.usefixtures("world")
def test_two_swapped_rows_of_any_table_are_named() -> None:
    for kind in KINDS:
        if not issubclass(kind, Chained):
            continue
        one, _, two = rows_of(kind)
        with undone():
            for row, other in ((one, two), (two, one)):
                values = {"link": other.link, "chain": other.chain}
                kind._base_manager.filter(pk=row.pk).update(**values)
            assert is_named(one) or is_named(two), kind


@pytest.mark.usefixtures("world")
def test_a_copy_of_a_row_in_any_table_is_named() -> None:
    for kind in KINDS:
        for row in rows_of(kind):
            copy = kind(**{f.attname: getattr(row, f.attname) for f in kind._meta.concrete_fields})
            for field in kind._meta.concrete_fields:
                # Of what another row has but one of, there can be no copy.
                is_own = field.unique and not field.is_relation
                if is_own and getattr(copy, field.attname) is not None:
                    setattr(copy, field.attname, changed(kind, field.column, copy))
            for one in kind._meta.constraints:
                if isinstance(one, models.UniqueConstraint):
                    last = kind._meta.get_field(one.fields[-1])
                    setattr(copy, last.attname, changed(kind, last.column, copy))  # type: ignore[union-attr]
            if isinstance(kind._meta.pk, models.AutoField):
                copy.pk = 1_000_000
            # A constraint refuses it, or verification names it.
            with undone():
                kind._base_manager.bulk_create([copy])
                assert is_named(copy), kind


@pytest.mark.usefixtures("world")
def test_the_row_of_a_chains_end_is_part_of_it() -> None:
    for conversation in Conversation.objects.all():
        with undone():
            Conversation.objects.filter(pk=conversation.pk).update(links=conversation.links - 1)
            assert any(verified())
    with undone():
        lock_site_chain().delete()
        assert "moneyrecord" in {problem.table for problem in verified()}


def test_the_ledger_of_a_call_stands_in_its_conversations_chain() -> None:
    place = stored_turns.played()
    entries = LedgerEntry.objects.filter(call__conversation=place.conversation)
    links = sorted(entries.values_list("link", flat=True))
    assert len(links) == 2 * place.conversation.calls.count()
    assert len(set(links)) == len(links)
    assert links[0] > 1
