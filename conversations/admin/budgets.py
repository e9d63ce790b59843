"""Budgets of the site, of groups and of people with their status, and turn caps.

The fields that define the windows of a budget are fixed once it was used. Grants are made on a page
of their own, with a reason, and never changed. A lowered limit applies from the next call.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from conversations.admin import budget_actions, csv_import
from conversations.admin.base import (
    Choosing,
    GroupFilter,
    OwnerFilter,
    ReadOnly,
    filter_by_key,
    link_list,
    link_row,
    list_names,
)
from conversations.admin.budget_actions import CORRECT, GRANT
from conversations.admin.budget_forms import (
    FIXED,
    BudgetForm,
    TurnCapForm,
    choose_fields,
    describe_limit_change,
    show_money_cap,
)
from conversations.admin.csv_export import SentAsFiles, write_budgets
from conversations.budgets.crossings import recording_afterwards
from conversations.budgets.current_use import (
    compute_current_use,
    filter_running_grants,
    list_corrections,
    list_members,
)
from conversations.budgets.units import show_amount
from conversations.models import Budget, BudgetWindow, Grant, LedgerEntry, TurnCap, User
from conversations.rendering.numbers import write_number
from conversations.templatetags.bars import bar, in_zone


class SubjectFilter(OwnerFilter):
    """By the person whose own budget it is."""

    path = "user"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list_names(User.objects.exclude(budgets=None))


class GranteeFilter(OwnerFilter):
    """By the person who has a grant: for them alone, or on a budget of their own."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        has_grant = Q(grants__isnull=False) | Q(budgets__grants__isnull=False)
        return list_names(User.objects.filter(has_grant))

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return rows
        return filter_by_key(rows, "user", value) | filter_by_key(rows, "budget__user", value)


class OfGroupFilter(GroupFilter):
    path = "group"


class BudgetChangeList(ChangeList):
    """A page of budgets, each with its present status."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = compute_current_use(list(self.result_list))
        for row in self.result_list:
            row.present = found[row.pk]


@admin.register(Budget)
class BudgetAdmin(SentAsFiles, Choosing):
    sheet, word = staticmethod(write_budgets), "budgets"
    actions = None
    form = BudgetForm
    list_display = ("__str__", "whose", "kind", "present_use", "starts_anew", "is_active")
    list_filter = (
        "is_active", "scope", "kind", "unit", "period", "model", OfGroupFilter, SubjectFilter
    )  # fmt: skip
    list_select_related = ("group", "user")
    list_per_page = 50
    search_fields = ("user__username", "group__name", "note")
    autocomplete_fields = ("group", "user")
    ordering = ("scope", "pk")
    fields = (*FIXED, "limit", "soft_percents", "is_active", "note", "reason")
    readonly_fields = ("amount",)
    show_full_result_count = False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return BudgetChangeList

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return choose_fields(self.fields, may)

    @admin.display(description=_("limit"))
    def amount(self, row: Budget) -> str:
        return show_amount(row.limit, row.unit)

    @admin.display(description=_("whose"), ordering="scope")
    def whose(self, row: Budget) -> str:
        owner = row.user or row.group
        return str(_("everybody")) if owner is None else link_row(owner)

    @admin.display(description=_("now"))
    def present_use(self, row: Any) -> str:
        one = row.present
        drawn = bar(one.spent, one.held, one.limit, row.unit)
        if one.members is None:
            return drawn
        words = _("by the one of %(count)s who used most; %(total)s in all")
        if one.members == 1:
            words = _("by the only one who used it; %(total)s in all")
        values = {"count": write_number(one.members), "total": show_amount(one.total, row.unit)}
        return format_html('{}<span class="budget-note">{}</span>', drawn, words % values)

    @admin.display(description=_("starts anew"))
    def starts_anew(self, row: Any) -> str:
        return in_zone(row.present.ends_at, row.time_zone)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        changes = super().construct_change_message(request, form, formsets, add)
        return changes if add else [*changes, *describe_limit_change(form)]

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        with recording_afterwards(budgets=[obj.pk] if change else []):
            super().save_model(request, obj, form, change)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # What a person has set for themselves only they change.
        may = super().has_change_permission(request, obj)
        return may and (obj is None or obj.kind != Budget.Kind.OWN)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("import/", wrap(csv_import.page), name="budgets_import"),
            path("<path:object_id>/grant/", wrap(budget_actions.grant), name="budget_grant"),
            *super().get_urls(),
        ]

    def list_files(self, request: HttpRequest) -> list[tuple[str, str]]:
        files = super().list_files(request)
        if csv_import.may_import(request):
            files.append((str(_("Take in CSV")), reverse("admin:budgets_import")))
        return files

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        budget = self.get_object(request, object_id)
        return super().change_view(
            request, object_id, form_url, (extra_context or {}) | build_status(request, budget)
        )


def build_status(request: HttpRequest, budget: Budget | None) -> dict[str, Any]:
    """Return the template context of a budget's page besides its fields."""
    if budget is None:
        return {}
    grants = (
        filter_running_grants()
        .filter(budget=budget)
        .select_related("user", "actor")
        .order_by("-pk")
    )
    return {
        "present": compute_current_use([budget])[budget.pk],
        "members": list_members(budget),
        "grants": grants[:50],
        "corrections": list_corrections(window__budget=budget)[:20],
        "may_grant": request.user.has_perm(GRANT) and budget.kind != Budget.Kind.OWN,
        "may_correct": request.user.has_perms((CORRECT, "conversations.view_budgetwindow")),
        "windows": link_list(BudgetWindow, str(_("All its windows")), budget__id__exact=budget.pk),
        "entries": link_list(LedgerEntry, str(_("Its ledger")), budget=budget.pk),
    }


@admin.register(Grant)
class GrantAdmin(ReadOnly):
    """Grants: amount, actor, reason and end; they are made on the page of the budget."""

    list_display = (
        "created_at", "more", "budget", "whose", "starts_at", "expires_at", "reason", "actor"
    )  # fmt: skip
    list_filter = ("created_at", "expires_at", GranteeFilter)
    list_select_related = ("budget", "budget__user", "budget__group", "user", "actor")
    search_fields = ("user__username", "budget__user__username", "budget__group__name", "reason")
    ordering = ("-pk",)
    fields = (
        "more", "budget", "whose", "starts_at", "expires_at", "reason", "actor", "created_at"
    )  # fmt: skip

    @admin.display(description=_("added amount"), ordering="amount")
    def more(self, row: Grant) -> str:
        return show_amount(row.amount, row.budget.unit)

    @admin.display(description=_("for whom"))
    def whose(self, row: Grant) -> str:
        owner = row.user or row.budget.user or row.budget.group
        return str(_("everybody")) if owner is None else link_row(owner)


@admin.register(TurnCap)
class TurnCapAdmin(Choosing):
    actions = None
    form = TurnCapForm
    list_display = ("group", "user", "money", "rounds", "tool_calls", "seconds")
    list_display_links = ("group", "user")
    list_select_related = ("group", "user")
    search_fields = ("user__username", "group__name")
    autocomplete_fields = ("group", "user")
    fields = ("group", "user", "micros", "rounds", "tool_calls", "seconds", "reason")
    readonly_fields = ("money",)
    show_full_result_count = False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return choose_fields(self.fields, may)

    @admin.display(description=_("money"), ordering="micros")
    def money(self, row: TurnCap) -> str:
        return show_money_cap(row)
