"""A provider's difference is booked once, where every call of its model counts, and on record."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from io import StringIO
from pathlib import Path
from uuid import uuid5

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from conversations.audit.money_checks import check_booked_differences
from conversations.audit.verify import Tally, verify_everything
from conversations.budgets import booked_differences
from conversations.budgets.booked_differences import (
    Wanted,
    book_differences,
    list_entries,
    load_pools,
)
from conversations.budgets.grants import BudgetError, set_limit
from conversations.budgets.usage.provider_report import (
    Difference,
    Report,
    compare_with_record,
)
from conversations.log.triggers import allow_erasing
from conversations.models import (
    ApiModel,
    ApiResult,
    BookedDifference,
    Budget,
    BudgetWindow,
    LedgerEntry,
    User,
)
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db
DAY = "2026-01-15"
WHY = "the provider's bill"
SONNET = "Sonnet 5.5"


def pool(period: str = "month", **values: str) -> Budget:
    """Return a budget of the site that is older than the day."""
    chosen = {"kind": "pool", "unit": "money", "period": period} | values
    found = set_limit(limit=50_000_000, **chosen)  # type: ignore[arg-type]
    Budget.objects.filter(pk=found.pk).update(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    return found


def report(amount: int, *, model: str = SONNET, day: str = DAY, unit: str = "money") -> Report:
    return Report(unit, {(day, model): amount})


def book(said: Report, reason: str = WHY, actor: User | None = None) -> list[BookedDifference]:
    rows = compare_with_record(said).rows
    wanted = [Wanted(row.day, row.model, row.left) for row in rows if row.left]
    return book_differences(report=said, wanted=wanted, reason=reason, actor=actor)


def spent(budget: Budget) -> list[tuple[int, int]]:
    rows = BudgetWindow.objects.filter(budget=budget).order_by("pk")
    return list(rows.values_list("spent", "overrun"))


def test_it_is_booked_in_the_pools_of_the_site_that_count_the_model() -> None:
    ada = people_and_turns.person("ada")
    counting = [pool(), pool("day"), pool("lifetime"), pool("month", model="sonnet")]
    others = [
        pool("hour"), pool(model="opus"), pool(unit="tokens"), pool(kind="per_member"),
        set_limit(kind="pool", unit="money", period="week", limit=9),
        set_limit(user=ada, kind="per_member", unit="money", period="month", limit=9),
    ]  # fmt: skip
    (row,) = book(report(70), actor=ada)
    assert [spent(each) for each in counting] == [[(70, 0)]] * 4
    assert not BudgetWindow.objects.filter(budget__in=others).exists()
    assert (row.amount, row.windows, row.reason, row.actor) == (70, 4, WHY, ada)
    entries = list_entries(row)
    assert [(one.kind, one.amount, one.reason, one.actor) for one in entries] == [
        ("adjust", 70, WHY, ada)
    ] * 4
    starts = {one.window.budget.period: one.window.starts_at for one in entries}
    assert starts["day"] == datetime(2026, 1, 15, tzinfo=UTC)
    assert list(verify_everything(Tally())) == []


def test_a_second_time_books_nothing_and_a_later_report_only_the_rest() -> None:
    month = pool()
    seen = [Wanted(DAY, SONNET, 70)]
    assert len(book_differences(report=report(70), wanted=seen, reason=WHY)) == 1
    assert book_differences(report=report(70), wanted=seen, reason=WHY) == []
    assert compare_with_record(report(70)).rows == (Difference(DAY, SONNET, 70, 0, 70),)
    assert [row.amount for row in book(report(90))] == [20]
    assert [row.amount for row in book(report(10, model="Opus 4.8"))] == [10, -90]
    assert spent(month) == [(10, 0)]
    assert list(verify_everything(Tally())) == []


def test_what_changed_since_it_was_seen_is_not_booked_and_nothing_else_of_it() -> None:
    month = pool()
    seen = [Wanted(DAY, "Opus 4.8", 5), Wanted(DAY, SONNET, 60)]
    said = Report("money", {(DAY, SONNET): 70, (DAY, "Opus 4.8"): 5})
    with pytest.raises(BudgetError, match="changed since"):
        book_differences(report=said, wanted=seen, reason=WHY)
    assert spent(month) == []
    assert not BookedDifference.objects.exists()


def test_without_a_budget_of_the_site_it_is_on_record_alone() -> None:
    (row,) = book(report(70, unit="tokens"))
    assert (row.windows, list_entries(row)) == (0, [])
    assert compare_with_record(report(70, unit="tokens")).rows[0].left == 0
    assert compare_with_record(report(70)).rows[0].left == 70
    assert list(verify_everything(Tally())) == []


def test_what_was_reported_less_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    month = pool()
    stored_turns.played()
    today = str(timezone.now().astimezone(UTC).date())
    cost = sum(ApiResult.objects.values_list("cost_micros", flat=True))
    seen = report(cost - 3, day=today)
    with pytest.raises(BudgetError, match="when it is over"):
        book(seen)
    monkeypatch.setattr(booked_differences, "is_over", bool)
    assert [row.amount for row in book(seen)] == [-3]
    assert [sum(each) for each in spent(month)] == [cost - 3]
    with pytest.raises(BudgetError, match="cannot be corrected"):
        book(report(-1, day=today))
    with pytest.raises(BudgetError, match="reason"):
        book(report(0, day=today), reason=" ")
    assert list(verify_everything(Tally())) == []


def test_a_dated_model_is_found_by_its_name() -> None:
    pools = load_pools("money")
    assert pools.list_for(date(2026, 1, 15), "Haiku 4.5") == []
    ApiModel.objects.create(id="claude-haiku-4-5-20251001", window=9, max_output=9)
    dated = pool(model="claude-haiku-4-5-20251001")
    assert load_pools("money").list_for(date(2026, 1, 15), "Haiku 4.5") == [dated]
    assert load_pools("money").list_for(date(2026, 1, 15), SONNET) == []
    assert load_pools("money").list_for(date(2025, 12, 31), "Haiku 4.5") == []


@pytest.fixture
def booked() -> Iterator[BookedDifference]:
    pool()
    (row,) = book(report(70))
    assert list(check_booked_differences()) == []
    with allow_erasing():
        yield row


def test_a_booking_without_its_entry_is_found(booked: BookedDifference) -> None:
    LedgerEntry.objects.filter(pk=list_entries(booked)[0].pk).delete()
    (problem,) = check_booked_differences()
    assert str(booked.pk) in str(problem)
    assert "its ledger entries are [], and by it 1 of 70" in str(problem)


def test_an_unreadable_booking_is_a_problem_and_no_traceback(
    booked: BookedDifference, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(row: BookedDifference) -> list[LedgerEntry]:
        raise ValueError(row.pk)

    monkeypatch.setattr("conversations.audit.money_checks.list_entries", refuse)
    (problem,) = check_booked_differences()
    assert "cannot be read" in str(problem)


def test_the_keys_of_entries_are_made_of_the_bookings(booked: BookedDifference) -> None:
    (entry,) = list_entries(booked)
    assert entry.form == uuid5(booked.form, str(entry.window_id))


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_database("postgres", "SQLite has one writer at a time")
def test_of_many_bookings_at_once_one_books() -> None:
    month, counts = pool(), []
    gate = threading.Barrier(6)

    def run() -> None:
        gate.wait()
        try:
            seen = [Wanted(DAY, SONNET, 70)]
            counts.append(len(book_differences(report=report(70), wanted=seen, reason=WHY)))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(counts) == [0, 0, 0, 0, 0, 1]
    assert spent(month) == [(70, 0)]


def test_the_command_books_each_day_that_is_over_once_with_its_reason(tmp_path: Path) -> None:
    people_and_turns.person("ada")
    month, path = pool(), tmp_path / "costs.csv"
    lines = [f"{DAY},{SONNET},2", f"{DAY},Opus 4.8,0", f"2999-12-31,{SONNET},1"]
    path.write_text("\n".join(["usage_date_utc,model,cost_usd", *lines]))
    for reason in ([], ["--reason", " "]):
        with pytest.raises(CommandError, match="a reason is needed"):
            call_command("ledger", "compare", str(path), "--book", *reason)
    said = []
    for _ in range(2):
        out = StringIO()
        call_command(
            "ledger", "compare", str(path), "--book", f"--reason={WHY}", "--by=ada", stdout=out
        )
        said.append(out.getvalue().splitlines())
    assert said[0][0] == "1 differences booked, 1 entries of the ledger"
    assert said[1][0] == "0 differences booked, 0 entries of the ledger"
    assert f"{DAY} {SONNET}: reported 2.00, recorded 0.00, difference 2.00, booked 2.00" in said[0]
    assert said[0][1:] == said[1][1:]
    assert spent(month) == [(2_000_000, 0)]
    row = BookedDifference.objects.get()
    assert (row.reason, str(row.actor)) == (WHY, "ada")
