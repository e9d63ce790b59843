"""Money as it moved: windows, reservations and the ledger, to read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from conversations.admin.base import OwnerFilter, ReadOnly, link
from conversations.models import BudgetWindow, Crossing, LedgerEntry, Reservation
from conversations.queries.windows import bar
from conversations.templatetags.agentweb import worth


class BudgetUserFilter(OwnerFilter):
    path = "user"


class WindowUserFilter(OwnerFilter):
    path = "window__user"


def whose(window: BudgetWindow) -> str:
    """Link to the person or the group whose window it is."""
    owner = window.user or window.budget.group
    return "everybody" if owner is None else link(owner)


@admin.register(BudgetWindow)
class BudgetWindowAdmin(ReadOnly):
    list_display = (
        "starts_at", "whose", "period", "allowed", "settled", "on_hold", "above", "used"
    )  # fmt: skip
    list_filter = (
        "budget__scope", "budget__unit", "budget__period", BudgetUserFilter, "starts_at"
    )  # fmt: skip
    list_select_related = ("budget", "budget__group", "user")
    ordering = ("-starts_at", "-pk")
    search_fields = ("user__username", "budget__group__name", "budget__note")
    fields = (
        "whose", "budget_link", "period", "used", "starts_at", "ends_at", "allowed", "settled",
        "on_hold", "above", "limit", "spent", "held", "overrun",
    )  # fmt: skip

    @admin.display(description="whose", ordering="user__username")
    def whose(self, row: BudgetWindow) -> str:
        return whose(row)

    @admin.display(description="budget")
    def budget_link(self, row: BudgetWindow) -> str:
        return link(row.budget)

    @admin.display(description="period", ordering="budget__period")
    def period(self, row: BudgetWindow) -> str:
        return row.budget.get_period_display()

    @admin.display(description="limit", ordering="limit")
    def allowed(self, row: BudgetWindow) -> str:
        return worth(row.limit, row.budget.unit)

    @admin.display(description="spent", ordering="spent")
    def settled(self, row: BudgetWindow) -> str:
        return worth(row.spent, row.budget.unit)

    @admin.display(description="held", ordering="held")
    def on_hold(self, row: BudgetWindow) -> str:
        return worth(row.held, row.budget.unit)

    @admin.display(description="overrun", ordering="overrun")
    def above(self, row: BudgetWindow) -> str:
        return worth(row.overrun, row.budget.unit)

    @admin.display(description="used")
    def used(self, row: BudgetWindow) -> str:
        return bar(row.budget, row)


class Movement(ReadOnly):
    """What reservations and ledger entries have in common."""

    list_select_related = (
        "window", "window__budget", "window__budget__group", "window__user", "call"
    )  # fmt: skip
    ordering = ("-pk",)
    search_fields = ("window__user__username", "window__budget__group__name")

    @admin.display(description="whose", ordering="window__user__username")
    def whose(self, row: Any) -> str:
        return whose(row.window)

    @admin.display(description="window")
    def window_link(self, row: Any) -> str:
        return link(row.window)

    @admin.display(description="call")
    def call_link(self, row: Any) -> str:
        return link(row.call)

    @admin.display(description="worth", ordering="amount")
    def shown(self, row: Any) -> str:
        return worth(row.amount, row.window.budget.unit)


@admin.register(Reservation)
class ReservationAdmin(Movement):
    list_display = ("id", "whose", "window_link", "call_link", "shown", "is_open")
    list_filter = ("is_open", WindowUserFilter)
    fields = ("whose", "window_link", "call_link", "shown", "amount", "is_open")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(Movement):
    list_display = ("created_at", "whose", "kind", "shown", "window_link", "call_link", "reason")
    list_filter = ("kind", WindowUserFilter, "created_at")
    date_hierarchy = "created_at"
    fields = (
        "created_at", "whose", "kind", "shown", "amount", "window_link", "call_link", "reason",
        "actor",
    )  # fmt: skip


@admin.register(Crossing)
class CrossingAdmin(ReadOnly):
    """Soft percents that were passed, when people were told."""

    list_display = ("created_at", "whose", "percent", "window_link")
    list_filter = ("percent", WindowUserFilter, "created_at")
    list_select_related = ("window", "window__budget", "window__budget__group", "window__user")
    ordering = ("-pk",)
    fields = ("created_at", "whose", "percent", "window_link", "spent", "limit")

    @admin.display(description="whose", ordering="window__user__username")
    def whose(self, row: Crossing) -> str:
        return whose(row.window)

    @admin.display(description="window")
    def window_link(self, row: Crossing) -> str:
        return link(row.window)
