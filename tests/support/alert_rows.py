"""Alerts and crossings, for tests of what is told."""

from __future__ import annotations

import asyncio
from typing import Any

from django.db import transaction
from django.utils import timezone

from conversations.alerts.alert_settings import save_alert
from conversations.alerts.delivery import deliver_alerts
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import AlertDelivery, Budget, BudgetAlert, BudgetWindow, Crossing, User
from conversations.models.periods import compute_bounds

ORIGIN = "https://chat.example"


def alert(*people: User, **fields: Any) -> BudgetAlert:
    row = BudgetAlert(**{"name": f"alert {BudgetAlert.objects.count()}"} | fields)
    save_alert(alert=row, origin=ORIGIN)
    row.people.set(people)
    return row


def crossed(
    budget: Budget, percent: int, user: User | None = None, *, spent: int | None = None
) -> Crossing:
    """Record that a budget's present window has passed a percent; `spent` in percent, too."""
    starts, ends = compute_bounds(budget.period, budget.time_zone, timezone.now())
    window, _ = BudgetWindow.objects.get_or_create(
        budget=budget, user=user or budget.user, starts_at=starts, ends_at=ends,
        defaults={"limit": budget.limit},
    )  # fmt: skip
    spent = budget.limit * (percent if spent is None else spent) // 100
    row = Crossing(window=window, percent=percent, spent=spent, limit=budget.limit)
    with transaction.atomic():
        append_row(row, lock_site_chain())
    return row


def sweep() -> int:
    return asyncio.run(deliver_alerts())


def make_due() -> None:
    """Let the pauses of everything that waits be over."""
    AlertDelivery.objects.filter(state="waiting").update(next_try_at=timezone.now())
