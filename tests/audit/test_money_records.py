"""Prices, limits, caps and exemptions are on record: a change past the product is found."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, models, transaction
from django.utils import timezone

from conversations.audit.verify import Tally, verify_everything
from conversations.budgets.grants import set_exempt, set_limit
from conversations.budgets.money_records import (
    COLUMNS,
    changed_by,
    name_table,
    record_first,
)
from conversations.budgets.price_book import NewPrice, load_prices
from conversations.context.view import wire
from conversations.log.chain import _FIELDS, compute_link
from conversations.models import (
    ApiModel,
    Budget,
    BudgetWindow,
    ModelPrice,
    MoneyRecord,
    TurnCap,
    User,
)
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db
MORE = {"limit": 5_000_000, "unit": "money", "period": "month", "kind": "per_member"}


@pytest.fixture
def world() -> User:
    """Rows of every table, made and changed as the product does it."""
    user, boss = people_and_turns.person(), people_and_turns.person("boss")
    group = Group.objects.create(name="Research")
    set_limit(user=user, **MORE)
    set_limit(user=user, **MORE | {"limit": 6_000_000, "note": "more"})
    set_limit(group=group, **MORE | {"kind": "pool"})
    set_limit(group=group, **MORE | {"kind": "pool", "limit": None})
    load_prices(rows=[NewPrice(stored_turns.MODEL, "input", 7_000_000)])
    TurnCap.objects.create(group=group, micros=1_000_000)
    cap = TurnCap.objects.create(user=user, micros=1_000_000)
    cap.delete()
    set_exempt(user=boss, is_exempt=True, reason="the boss", actor=boss)
    set_exempt(user=user, is_exempt=True, reason="a trial", actor=boss)
    set_exempt(user=user, is_exempt=False, reason="it ended", actor=boss)
    User.objects.create_user("root", is_exempt=True).save()
    return user


def verified() -> set[tuple[str, str]]:
    return {(found.table, found.id) for found in verify_everything(Tally())}


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def changed(value: Any, field: Any) -> Any:
    """Give another value that the constraints of the tables allow."""
    match field:
        case models.BooleanField():
            return not value
        case models.DateTimeField():
            return (value or timezone.now()) + dt.timedelta(microseconds=1)
        case models.CharField() if field.choices:
            return next(key for key, _ in field.choices if key != value)
        case models.CharField():
            return f"{value}~"
        case models.ForeignKey() if isinstance(value, str):
            return next(
                key for key in ApiModel.objects.values_list("pk", flat=True) if key != value
            )
        case _:
            return (value or 0) + 1


@pytest.mark.usefixtures("world")
def test_changes_by_the_product_are_on_record() -> None:
    assert verified() == set()
    # What changes nothing of them is not recorded again.
    before = MoneyRecord.objects.count()
    Budget.objects.first().save()  # type: ignore[union-attr]
    User.objects.get(username="root").save(update_fields=["last_login"])
    assert MoneyRecord.objects.count() == before


@pytest.mark.usefixtures("world")
def test_every_column_that_money_is_computed_from_is_held() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        missed = [
            f"{name_table(table)}.{name}"
            for table, names in COLUMNS.items()
            for name in names
            if not is_change_found(table, name)
        ]
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
    assert missed == []


def is_change_found(table: type[models.Model], name: str) -> bool:
    field: Any = next(one for one in table._meta.concrete_fields if one.attname == name)
    # A closed price has no neighbour that it could be equal to.
    wanted = {User: {"is_exempt": True}, ModelPrice: {"effective_to__isnull": False}}
    rows = table._default_manager.filter(**wanted.get(table, {}))
    row = rows.order_by("pk").last()
    assert row is not None
    new = changed(getattr(row, name), field)
    with undone(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            for one in table._meta.constraints:
                if isinstance(one, models.CheckConstraint):
                    quoted = f'"{table._meta.db_table}" DROP CONSTRAINT "{one.name}"'
                    cursor.execute(f"ALTER TABLE {quoted}")
        cursor.execute(
            f'UPDATE "{table._meta.db_table}" SET "{field.column}" = %s WHERE id = %s',
            [new, row.pk],
        )
        return (name_table(table), str(row.pk)) in verified()


@pytest.mark.usefixtures("world")
def test_an_added_and_a_deleted_row_are_found() -> None:
    for table in COLUMNS:
        if table is User:
            continue
        row = table._default_manager.order_by("pk").last()
        assert row is not None
        with undone():
            rows = table._default_manager.filter(pk=row.pk)
            rows._raw_delete(rows.db)
            assert (name_table(table), str(row.pk)) in verified()
    with undone():
        new = ModelPrice(
            model_id=stored_turns.MODEL, kind="input", micros_per_million=1, above_tokens=9,
            effective_from=timezone.now(),
        )  # fmt: skip
        ModelPrice.objects.bulk_create([new])
        assert verified() == {("modelprice", str(new.pk))}


def test_rows_of_before_the_records_are_recorded_once() -> None:
    prices = MoneyRecord.objects.filter(table="modelprice")
    assert prices.count() == ModelPrice.objects.count() > 0
    record_first("another")
    record_first()
    assert prices.count() == ModelPrice.objects.count()


def test_a_window_that_is_gone_is_missed() -> None:
    stored_turns.played()
    window = BudgetWindow.objects.get()
    with undone():
        rows = BudgetWindow.objects.filter(pk=window.pk)
        rows._raw_delete(rows.db)
        assert ("budgetwindow", str(window.pk)) in verified()


@pytest.mark.only_database("sqlite", "PostgreSQL stores no text that is none")
def test_a_table_that_cannot_be_read_is_a_finding() -> None:
    key = ModelPrice.objects.order_by("pk").values_list("pk", flat=True)[0]
    with connection.cursor() as cursor:
        sql = "UPDATE conversations_modelprice SET kind = CAST(x'ff' AS TEXT) WHERE id = %s"
        cursor.execute(sql, [key])
    assert ("modelprice", "") in verified()


def test_records_name_who_changed_a_row_and_why(world: User) -> None:
    boss = User.objects.get(username="boss")
    last = MoneyRecord.objects.filter(table="user", key=world.pk).order_by("link").last()
    assert last is not None
    assert (last.actor, last.reason) == (boss, "it ended")
    with changed_by(boss.pk, "more work"):
        set_limit(user=world, **MORE | {"limit": 7_000_000})
        with changed_by(world.pk):
            set_limit(user=world, **MORE | {"limit": 8_000_000})
    set_limit(user=world, **MORE | {"limit": 9_000_000})
    rows = MoneyRecord.objects.filter(table="budget").order_by("-link")[:3]
    assert [(one.actor, one.reason) for one in rows] == [
        (None, ""), (world, "more work"), (boss, "more work"),
    ]  # fmt: skip


@pytest.mark.usefixtures("world")
def test_records_without_a_person_keep_the_digest_that_they_had_before_people_were_named() -> None:
    row = MoneyRecord.objects.filter(table="budget").order_by("link").first()
    assert row is not None
    before = _FIELDS[MoneyRecord]
    assert {"actor_id", "reason"}.isdisjoint(before)
    fields = {name: getattr(row, name) for name in before} | {
        "created_at": row.created_at.astimezone(dt.UTC).isoformat(timespec="microseconds")
    }
    text = json.dumps(
        ["v1", "MoneyRecord", row.link, fields], sort_keys=True, separators=(",", ":")
    )
    assert compute_link("sha256:before", row) == wire.digest(f"sha256:before\n{text}")
    row.actor_id = User.objects.earliest("pk").pk
    assert compute_link("sha256:before", row) != wire.digest(f"sha256:before\n{text}")
