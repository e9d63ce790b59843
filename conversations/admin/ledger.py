"""Money as it moved: windows, reservations and the ledger, to read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from conversations.admin.base import OwnerFilter, ReadOnly, link
from conversations.models import BudgetWindow, LedgerEntry, Reservation
from conversations.queries.windows import bar
from conversations.templatetags.agentweb import dollars


class BudgetUserFilter(OwnerFilter):
    path = "budget__user"


class WindowUserFilter(OwnerFilter):
    path = "window__budget__user"


@admin.register(BudgetWindow)
class BudgetWindowAdmin(ReadOnly):
    list_display = ("starts_at", "user", "period", "limit", "spent", "held", "overrun", "used")
    list_filter = ("budget__period", BudgetUserFilter, "starts_at")
    list_select_related = ("budget", "budget__user")
    ordering = ("-starts_at", "-pk")
    search_fields = ("budget__user__username", "budget__note")
    fields = (
        "user", "period", "limit", "used", "starts_at", "ends_at", "spent", "held", "overrun",
        "spent_micros", "held_micros", "overrun_micros",
    )  # fmt: skip

    @admin.display(description="user", ordering="budget__user__username")
    def user(self, row: BudgetWindow) -> str:
        return link(row.budget.user)

    @admin.display(description="period", ordering="budget__period")
    def period(self, row: BudgetWindow) -> str:
        return row.budget.get_period_display()

    @admin.display(description="limit", ordering="budget__limit_micros")
    def limit(self, row: BudgetWindow) -> str:
        return dollars(row.budget.limit_micros)

    @admin.display(description="spent", ordering="spent_micros")
    def spent(self, row: BudgetWindow) -> str:
        return dollars(row.spent_micros)

    @admin.display(description="held", ordering="held_micros")
    def held(self, row: BudgetWindow) -> str:
        return dollars(row.held_micros)

    @admin.display(description="overrun", ordering="overrun_micros")
    def overrun(self, row: BudgetWindow) -> str:
        return dollars(row.overrun_micros)

    @admin.display(description="used")
    def used(self, row: BudgetWindow) -> str:
        return bar(row.budget, row)


class Movement(ReadOnly):
    """What reservations and ledger entries have in common."""

    list_select_related = ("window", "window__budget", "window__budget__user", "call")
    ordering = ("-pk",)
    search_fields = ("window__budget__user__username",)

    @admin.display(description="user", ordering="window__budget__user__username")
    def user(self, row: Any) -> str:
        return link(row.window.budget.user)

    @admin.display(description="window")
    def window_link(self, row: Any) -> str:
        return link(row.window)

    @admin.display(description="call")
    def call_link(self, row: Any) -> str:
        return link(row.call)

    @admin.display(description="amount", ordering="micros")
    def amount(self, row: Any) -> str:
        return dollars(row.micros)


@admin.register(Reservation)
class ReservationAdmin(Movement):
    list_display = ("id", "user", "window_link", "call_link", "amount", "is_open")
    list_filter = ("is_open", WindowUserFilter)
    fields = ("user", "window_link", "call_link", "amount", "micros", "is_open")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(Movement):
    list_display = ("created_at", "user", "kind", "amount", "window_link", "call_link", "reason")
    list_filter = ("kind", WindowUserFilter, "created_at")
    date_hierarchy = "created_at"
    fields = (
        "created_at", "user", "kind", "amount", "micros", "window_link", "call_link", "reason",
        "actor",
    )  # fmt: skip
