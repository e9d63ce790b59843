"""The page that compares a provider's report: budget officers book what is left, once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.admin import report_page
from conversations.budgets.grants import set_limit
from conversations.models import BookedDifference, Budget, BudgetWindow, LedgerEntry
from tests.web.tags import elements
from tests.web.test_admin_review import listed, staff, superuser

pytestmark = pytest.mark.django_db
COSTS = "usage_date_utc,model,cost_usd\n2026-01-15,Claude Sonnet 5.5,1.5\n"


def post(client: Client, status: int = 200, **values: object) -> str:
    response = client.post(reverse("admin:provider_report"), {"text": COSTS} | values)
    assert response.status_code == status
    return unescape(response.content.decode())


def marks(html: str) -> list[str]:
    boxes = (of for tag, of in elements(html) if tag == "input" and of.get("name") == "row")
    return [str(of["value"]) for of in boxes]


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_difference_is_shown_booked_once_and_then_shown_as_booked() -> None:
    client = superuser()
    budget = set_limit(kind="pool", unit="money", period="month", limit=50_000_000)
    Budget.objects.update(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    html = post(client)
    assert f"/budget/{budget.pk}/change/" in html
    found = marks(html)
    assert found == ["2026-01-15 1500000 Sonnet 5.5"]
    assert "Say why" in post(client, 400, book="1", row=found)
    assert not BookedDifference.objects.exists()
    assert "Differences booked: 1." in post(client, book="1", row=found, reason="the bill")
    assert "That is booked already." in post(client, book="1", row=found, reason="the bill")
    (entry,) = LedgerEntry.objects.all()
    assert (entry.amount, entry.reason, str(entry.actor)) == (1_500_000, "the bill", "root")
    assert BudgetWindow.objects.get().spent == 1_500_000
    again = post(client)
    assert marks(again) == []
    assert "2026-01-15 Sonnet 5.5 $1.50 $0.00 $1.50 $1.50 –" in words(again)


def test_a_file_is_read_and_a_later_one_leaves_the_rest() -> None:
    client = superuser()
    post(client, book="1", row=marks(post(client)), reason="the bill")
    later = COSTS.replace("1.5\n", "1.7\n").encode("utf-8-sig")
    html = post(client, text="", file=SimpleUploadedFile("costs.csv", later))
    assert marks(html) == ["2026-01-15 200000 Sonnet 5.5"]
    assert "No budget of the site counts these days" in html


def test_only_budget_officers_book_and_others_see() -> None:
    viewer = staff("viewer")
    html = post(viewer)
    assert "$1.50" in html
    assert marks(html) == []
    post(viewer, 403, book="1", row="2026-01-15 1500000 Sonnet 5.5", reason="mine")
    officer = staff("officer", "add_ledgerentry")
    assert len(marks(post(officer))) == 1
    assert reverse("admin:provider_report") in listed(officer, LedgerEntry)
    assert officer.get(reverse("admin:provider_report")).status_code == 200


@pytest.mark.parametrize("row", [[], ["x"], ["2026-01-15 x y"]])
def test_a_mark_that_says_nothing_is_refused(row: list[str]) -> None:
    assert "Mark what is to be booked." in post(superuser(), 400, book="1", row=row, reason="x")


def test_what_is_no_report_and_what_is_not_over_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    client = superuser()
    assert "It needs the columns" in post(client, 400, text="a,b\n1,2\n")
    assert "Choose a file" in post(client, 400, text="")
    today = COSTS.replace("2026-01-15", str(timezone.now().astimezone(UTC).date()))
    assert marks(post(client, text=today)) == []
    monkeypatch.setattr(report_page, "MOST_MARKED", 0)
    assert marks(post(client)) == []
