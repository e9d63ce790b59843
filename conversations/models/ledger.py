"""The ledger: every movement in a window as an entry that never changes.

An amount is in the unit of the window's budget. What a call holds is a reservation; its entries
record when it was held, and either its settlement or its release.
"""

from __future__ import annotations

from uuid import uuid4

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.budgets import BudgetWindow
from conversations.models.calls import ApiCall
from conversations.models.log import Chained


class Reservation(models.Model):
    """What one call holds in one window until it is settled or released."""

    call = models.ForeignKey(ApiCall, on_delete=models.PROTECT, related_name="reservations")
    window = models.ForeignKey(BudgetWindow, on_delete=models.PROTECT, related_name="reservations")
    amount = models.PositiveBigIntegerField()
    is_open = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["call", "window"], name="reservation_call_window")
        ]
        indexes = [
            models.Index(
                fields=["window"], condition=models.Q(is_open=True), name="reservation_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} for {self.call_id}"


class LedgerEntry(Chained):
    """A movement; that of a call is in its conversation's chain, any other in the site's."""

    class Kind(models.TextChoices):
        RESERVE = "reserve", _("Reserve")
        SETTLE = "settle", _("Settle")
        RELEASE = "release", _("Release")
        ADJUST = "adjust", _("Adjust")

    window = models.ForeignKey(BudgetWindow, on_delete=models.PROTECT, related_name="entries")
    call = models.ForeignKey(ApiCall, null=True, on_delete=models.PROTECT, related_name="entries")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    amount = models.BigIntegerField()
    #: How much of a correction changed the overrun; the rest changed what is spent.
    overrun = models.BigIntegerField(default=0, db_default=0)
    #: The limit of the window after a hold or a correction.
    limit = models.PositiveBigIntegerField(null=True)
    reason = models.CharField(max_length=200, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    #: Identifies the submitted form of a correction, so that submitting it twice enters it once.
    form = models.UUIDField(null=True, unique=True, editable=False)

    class Meta:
        verbose_name_plural = _("ledger entries")
        indexes = [models.Index(fields=["created_at", "id"], name="ledger_created_at")]
        constraints = [
            models.UniqueConstraint(fields=["call", "window", "kind"], name="ledger_once"),
            # Only a correction gives back, and it has a reason.
            models.CheckConstraint(
                name="ledger_amount",
                condition=models.Q(amount__gte=0) | models.Q(kind="adjust"),
            ),
            models.CheckConstraint(
                name="ledger_reason",
                condition=models.Q(call__isnull=False)
                | (models.Q(kind="adjust") & ~models.Q(reason="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount}"


class Crossing(Chained):
    """A percent that a window has passed, recorded once; the source of notices and alerts."""

    window = models.ForeignKey(BudgetWindow, on_delete=models.PROTECT, related_name="crossings")
    percent = models.PositiveSmallIntegerField()
    #: What was spent then, and the limit.
    spent = models.PositiveBigIntegerField()
    limit = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["window", "percent"], name="crossing_once")]
        indexes = [models.Index(fields=["created_at"], name="crossing_created")]

    def __str__(self) -> str:
        return f"{self.percent} %"


class MoneyRecord(Chained):
    """A row that money is computed from as it is from then on; budgets/money_records.py."""

    #: The name of the row's model.
    table = models.CharField(max_length=20)
    key = models.PositiveBigIntegerField()
    #: The row as JSON; "": it was deleted.
    content = models.TextField()
    #: Who changed it and why, where a person did.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    reason = models.CharField(max_length=200, blank=True, db_default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["table", "key", "link"], name="money_record_of_row")]

    def __str__(self) -> str:
        return f"{self.table} {self.key}"


class BookedDifference(Chained):
    """What a provider's report said beyond the record, booked; budgets/booked_differences.py."""

    day = models.DateField()
    #: The model's name, as the comparison has it.
    model = models.CharField(max_length=100, blank=True)
    unit = models.CharField(max_length=10)
    amount = models.BigIntegerField()
    #: In how many windows it was entered, each with a key made of this one.
    windows = models.PositiveSmallIntegerField()
    form = models.UUIDField(default=uuid4, unique=True, editable=False)
    reason = models.CharField(max_length=200)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["day", "model"], name="booked_difference_of_day")]
        constraints = [
            models.CheckConstraint(name="booked_reason", condition=~models.Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of {self.model} on {self.day}"
