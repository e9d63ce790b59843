"""Movements of money: windows, reservations and the ledger, to read and to export as CSV."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from conversations.admin import budget_actions, report_page
from conversations.admin.base import OwnerFilter, ReadOnly, filter_by_key, link_list, link_row
from conversations.admin.budget_actions import CORRECT
from conversations.admin.csv_export import SentAsFiles, write_ledger
from conversations.budgets.current_use import list_corrections
from conversations.budgets.units import show_amount
from conversations.models import ApiCall, BudgetWindow, Crossing, LedgerEntry, Reservation
from conversations.templatetags.bars import bar, in_zone


class BudgetUserFilter(OwnerFilter):
    path = "user"


class WindowUserFilter(OwnerFilter):
    path = "window__user"


class PurposeFilter(admin.SimpleListFilter):
    """By the purpose of the call; corrections have none."""

    title = _("purpose")
    parameter_name = "purpose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(ApiCall.Purpose.choices)

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.value() is None else rows.filter(call__purpose=self.value())


class EntryBudgetFilter(admin.SimpleListFilter):
    """By a budget, linked from its own page; it offers no choices."""

    title = _("budget")
    parameter_name = "budget"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        value = request.GET.get(self.parameter_name)
        return [(value, _("budget %(number)s") % {"number": value})] if value else []

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return rows if value is None else filter_by_key(rows, "window__budget", value)


def link_owner(window: BudgetWindow) -> str:
    """Return a link to the person or the group whose window it is."""
    owner = window.user or window.budget.group
    return str(_("everybody")) if owner is None else link_row(owner)


@admin.register(BudgetWindow)
class BudgetWindowAdmin(ReadOnly):
    linked_lookups = ("budget__id__exact",)
    list_display = ("begins", "whose", "period", "used", "above", "limit_then", "ends")
    list_filter = (
        "budget__scope", "budget__unit", "budget__period", BudgetUserFilter, "starts_at"
    )  # fmt: skip
    list_select_related = ("budget", "budget__group", "user")
    ordering = ("-starts_at", "-pk")
    search_fields = ("user__username", "budget__group__name", "budget__note")
    fields = (
        "whose", "budget_link", "period", "used", "begins", "ends", "limit_then", "settled",
        "on_hold", "above", "entries",
    )  # fmt: skip

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(budget_actions.correct)
        return [path("<path:object_id>/correct/", view, name="window_correct"), *super().get_urls()]

    def review(self, request: HttpRequest, row: BudgetWindow) -> dict[str, Any]:
        return {
            "corrections": list_corrections(window=row)[:20],
            "may_correct": request.user.has_perm(CORRECT),
        }

    @admin.display(description=_("whose"), ordering="user__username")
    def whose(self, row: BudgetWindow) -> str:
        return link_owner(row)

    @admin.display(description=_("budget"))
    def budget_link(self, row: BudgetWindow) -> str:
        return link_row(row.budget)

    @admin.display(description=_("period"), ordering="budget__period")
    def period(self, row: BudgetWindow) -> str:
        return row.budget.get_period_display()

    @admin.display(description=_("limit then"), ordering="limit")
    def limit_then(self, row: BudgetWindow) -> str:
        return show_amount(row.limit, row.budget.unit)

    @admin.display(description=_("spent"), ordering="spent")
    def settled(self, row: BudgetWindow) -> str:
        return show_amount(row.spent, row.budget.unit)

    @admin.display(description=_("held"), ordering="held")
    def on_hold(self, row: BudgetWindow) -> str:
        return show_amount(row.held, row.budget.unit)

    @admin.display(description=_("overrun"), ordering="overrun")
    def above(self, row: BudgetWindow) -> str:
        return show_amount(row.overrun, row.budget.unit)

    @admin.display(description=_("used"))
    def used(self, row: BudgetWindow) -> str:
        """Draw the use and the limit at the last call; the budget's page has the present limit."""
        return bar(row.spent + row.overrun, row.held, row.limit, row.budget.unit)

    @admin.display(description=_("begins"), ordering="starts_at")
    def begins(self, row: BudgetWindow) -> str:
        return in_zone(row.starts_at, row.budget.time_zone)

    @admin.display(description=_("ends"), ordering="ends_at")
    def ends(self, row: BudgetWindow) -> str:
        return in_zone(row.ends_at, row.budget.time_zone)

    @admin.display(description=_("ledger"))
    def entries(self, row: BudgetWindow) -> str:
        return link_list(LedgerEntry, str(_("Its entries")), window__id__exact=row.pk)


#: Related rows that lists of movements show.
_LINKS = ("window__budget__group", "window__user", "call__cost_centre")


class Movement(ReadOnly):
    """The shared part of reservations and ledger entries.

    Related rows are read by the keys of the page's rows: joined, SQLite begins with the few windows
    and sorts the whole table.
    """

    search_fields = ("window__user__username", "window__budget__group__name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).prefetch_related(*_LINKS)

    @admin.display(description=_("whose"), ordering="window__user__username")
    def whose(self, row: Any) -> str:
        return link_owner(row.window)

    @admin.display(description=_("window"))
    def window_link(self, row: Any) -> str:
        return link_row(row.window)

    @admin.display(description=_("call"))
    def call_link(self, row: Any) -> str:
        return link_row(row.call)

    @admin.display(description=_("amount"), ordering="amount")
    def shown(self, row: Any) -> str:
        return show_amount(row.amount, row.window.budget.unit)


@admin.register(Reservation)
class ReservationAdmin(Movement):
    list_display = ("id", "whose", "window_link", "call_link", "shown", "is_open")
    list_filter = ("is_open", WindowUserFilter)
    ordering = ("-pk",)
    fields = ("whose", "window_link", "call_link", "shown", "is_open")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(SentAsFiles, Movement):
    sheet, word = staticmethod(write_ledger), "ledger"
    linked_lookups = ("window__id__exact",)
    list_display = (
        "created_at", "whose", "kind", "shown", "purpose", "window_link", "call_link", "reason",
        "actor",
    )  # fmt: skip
    list_filter = ("kind", PurposeFilter, WindowUserFilter, EntryBudgetFilter, "created_at")
    list_select_related = ("actor",)
    ordering = ("-created_at", "-pk")
    date_hierarchy = "created_at"
    fields = (
        "created_at", "whose", "kind", "shown", "purpose", "window_link", "call_link",
        "reason", "actor",
    )  # fmt: skip

    @admin.display(description=_("purpose"), ordering="call__purpose")
    def purpose(self, row: LedgerEntry) -> str:
        return row.call.get_purpose_display() if row.call else "–"

    def list_files(self, request: HttpRequest) -> list[tuple[str, str]]:
        files = super().list_files(request)
        if report_page.may_see(request):
            files.append((str(report_page.TITLE), reverse("admin:provider_report")))
        return files


@admin.register(Crossing)
class CrossingAdmin(ReadOnly):
    """Warning percentages that were passed, and when people were notified."""

    list_display = ("created_at", "whose", "percent", "window_link")
    list_filter = ("percent", WindowUserFilter, "created_at")
    list_select_related = ("window", "window__budget", "window__budget__group", "window__user")
    ordering = ("-pk",)
    fields = ("created_at", "whose", "percent", "window_link", "spent_then", "limit_then")

    @admin.display(description=_("whose"), ordering="window__user__username")
    def whose(self, row: Crossing) -> str:
        return link_owner(row.window)

    @admin.display(description=_("window"))
    def window_link(self, row: Crossing) -> str:
        return link_row(row.window)

    @admin.display(description=_("spent"))
    def spent_then(self, row: Crossing) -> str:
        return show_amount(row.spent, row.window.budget.unit)

    @admin.display(description=_("limit"))
    def limit_then(self, row: Crossing) -> str:
        return show_amount(row.limit, row.window.budget.unit)
