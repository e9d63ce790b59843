"""Scheduled prices: they block no change before them and can be withdrawn until they begin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.audit.money_checks import check_money_records
from conversations.budgets.price_book import NewPrice, PriceError, load_prices, withdraw_price
from conversations.budgets.prices import load_price_list
from conversations.models import ModelPrice, User
from tests.support import stored_turns

pytestmark = pytest.mark.django_db
MODEL = stored_turns.MODEL
DAY = timedelta(days=1)


def load(rate: int, starts: datetime | None = None) -> ModelPrice:
    (change,) = load_prices(rows=[NewPrice(MODEL, "input", rate, starts=starts)])
    assert "micro" not in str(change)
    return ModelPrice.objects.latest("pk")


def rates(*moments: datetime) -> list[int]:
    return [load_price_list(MODEL, at).rate("input", 0) for at in moments]


def spans() -> list[tuple[int, bool]]:
    """Return the rates in order, and whether each ends where the next begins."""
    rows = list(ModelPrice.objects.filter(model=MODEL, kind="input").order_by("effective_from"))
    ends = [row.effective_from for row in rows[1:]] + [None]
    return [
        (row.micros_per_million, row.effective_to == end)
        for row, end in zip(rows, ends, strict=True)
    ]


def test_a_scheduled_price_blocks_no_change_before_it() -> None:
    now = timezone.now()
    load(9_000_000, now + 10 * DAY)
    load(5_000_000)
    load(6_000_000, now + 5 * DAY)
    moments = now + DAY, now + 6 * DAY, now + 11 * DAY
    assert rates(*moments) == [5_000_000, 6_000_000, 9_000_000]
    assert spans() == [(rate, True) for rate in (2_000_000, 5_000_000, 6_000_000, 9_000_000)]
    # What is so already at that moment changes nothing.
    assert load_prices(rows=[NewPrice(MODEL, "input", 6_000_000, starts=now + 7 * DAY)]) == []


def test_a_scheduled_price_is_withdrawn_and_the_one_before_it_stays() -> None:
    now = timezone.now()
    last = load(9_000_000, now + 10 * DAY)
    middle = load(6_000_000, now + 5 * DAY)
    withdraw_price(price_id=middle.pk)
    assert rates(now + 6 * DAY, now + 11 * DAY) == [2_000_000, 9_000_000]
    withdraw_price(price_id=last.pk)
    assert rates(now + 11 * DAY) == [2_000_000]
    assert spans() == [(2_000_000, True)]
    assert list(check_money_records()) == []


def test_one_that_begins_a_tier_is_withdrawn_without_another_before_it() -> None:
    new = NewPrice(MODEL, "input", 7, 300_000, timezone.now() + DAY)
    load_prices(rows=[new])
    withdraw_price(price_id=ModelPrice.objects.latest("pk").pk)
    assert not ModelPrice.objects.filter(above_tokens=300_000).exists()


def test_what_has_begun_is_neither_withdrawn_nor_replaced_at_its_moment() -> None:
    begun = load(5_000_000)
    with pytest.raises(PriceError, match="it has begun"):
        withdraw_price(price_id=begun.pk)
    with pytest.raises(PriceError, match="begins at that moment or has begun since"):
        load(6_000_000, begun.effective_from)
    with pytest.raises(PriceError, match="begins at that moment or has begun since"):
        load(6_000_000, begun.effective_from - timedelta(minutes=1))
    with pytest.raises(PriceError, match="in the past"):
        load(6_000_000, begun.effective_from - DAY)


def form(start: datetime, **fields: Any) -> dict[str, Any]:
    return {
        "model": MODEL, "kind": "input", "micros_per_million": "7.25", "above_tokens": 0,
        "effective_from_0": f"{start:%Y-%m-%d}", "effective_from_1": "00:00:00",
    } | fields  # fmt: skip


def test_the_admin_adds_before_a_scheduled_price_and_withdraws_it() -> None:
    root = Client()
    root.force_login(User.objects.create_superuser("root", "r@example.org", "x"))
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    scheduled = load(9_000_000, midnight + 10 * DAY)
    old = ModelPrice.objects.get(model=MODEL, kind="input", effective_to=scheduled.effective_from)
    page = reverse("admin:conversations_modelprice_change", args=[old.pk])
    late, soon = midnight + 12 * DAY, midnight + 2 * DAY
    ends = {"effective_to_0": f"{late:%Y-%m-%d}", "effective_to_1": "00:00:00"}
    assert "withdraw it first" in root.post(page, ends).content.decode()
    ends["effective_to_0"] = f"{soon:%Y-%m-%d}"
    assert root.post(page, ends).status_code == 302
    add = reverse("admin:conversations_modelprice_add")
    assert root.post(add, form(soon)).status_code == 302
    assert rates(soon + DAY, late) == [7_250_000, 9_000_000]
    delete = reverse("admin:conversations_modelprice_delete", args=[scheduled.pk])
    assert root.post(delete, {"post": "yes"}).status_code == 302
    assert rates(late) == [7_250_000]
    begun = reverse("admin:conversations_modelprice_delete", args=[old.pk])
    assert root.post(begun, {"post": "yes"}).status_code == 403
    assert spans() == [(2_000_000, True), (7_250_000, True)]
