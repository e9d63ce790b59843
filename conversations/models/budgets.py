"""Money: budgets, their windows, what is reserved, and the ledger. Integer micro-dollars.

Windows are rows made on first use, so nothing has to reset them. `spent` and `held` move in the
transaction of the fact they belong to; the ledger says the same in entries that never change.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from conversations.models.calls import ApiCall
from conversations.models.log import AppendOnly


class Budget(models.Model):
    class Period(models.TextChoices):
        DAY = "day"
        MONTH = "month"
        LIFETIME = "lifetime"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="budgets"
    )
    period = models.CharField(max_length=10, choices=Period.choices, default=Period.MONTH)
    limit_micros = models.PositiveBigIntegerField(help_text="1,000,000 is one dollar.")
    is_active = models.BooleanField(default=True)
    note = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "period"],
                condition=models.Q(is_active=True),
                name="one_active_budget_per_period",
            )
        ]

    def __str__(self) -> str:
        return f"${self.limit_micros / 1_000_000:,.2f} a {self.period}"


class BudgetWindow(models.Model):
    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="windows")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)
    spent_micros = models.PositiveBigIntegerField(default=0)
    held_micros = models.PositiveBigIntegerField(default=0)
    overrun_micros = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["budget", "starts_at"], name="window_start"),
            models.CheckConstraint(
                condition=models.Q(spent_micros__gte=0, held_micros__gte=0),
                name="window_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget} from {self.starts_at:%Y-%m-%d}"


class Reservation(models.Model):
    """What one call holds in one window until it is settled or released."""

    call = models.ForeignKey(ApiCall, on_delete=models.PROTECT, related_name="reservations")
    window = models.ForeignKey(BudgetWindow, on_delete=models.PROTECT, related_name="reservations")
    micros = models.PositiveBigIntegerField()
    is_open = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["call", "window"], name="reservation_call_window")
        ]

    def __str__(self) -> str:
        return f"{self.micros} for {self.call_id}"


class LedgerEntry(AppendOnly):
    class Kind(models.TextChoices):
        RESERVE = "reserve"
        SETTLE = "settle"
        RELEASE = "release"
        ADJUST = "adjust"

    window = models.ForeignKey(BudgetWindow, on_delete=models.PROTECT, related_name="entries")
    call = models.ForeignKey(ApiCall, null=True, on_delete=models.PROTECT, related_name="entries")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    micros = models.BigIntegerField()
    reason = models.CharField(max_length=200, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "ledger entries"
        constraints = [
            models.UniqueConstraint(fields=["call", "window", "kind"], name="ledger_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.micros}"
