"""Who changed what money is computed from, when, from what to what, and why."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import OwnerFilter, ReadOnly, list_names
from conversations.admin.csv_export import SentAsFiles, write_money_records
from conversations.admin.keyed_page import KeyedPage
from conversations.budgets.money_history import describe_changes, filter_history, list_tables
from conversations.models import MoneyRecord, User


class ActorFilter(OwnerFilter):
    """By the person who changed it."""

    title = _("done by")
    path = "actor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        theirs = MoneyRecord.objects.filter(actor=OuterRef("pk"))
        return list_names(User.objects.filter(Exists(theirs)))


class TableFilter(admin.SimpleListFilter):
    title = _("what")
    parameter_name = "table"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list_tables()

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.value() is None else rows.filter(table=self.value())


class RecordChangeList(KeyedPage):
    """A page of records, each with what it changed."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        for row, change in zip(self.result_list, describe_changes(self.result_list), strict=True):
            row.change = change


@admin.register(MoneyRecord)
class MoneyRecordAdmin(SentAsFiles, ReadOnly):
    sheet, word = staticmethod(write_money_records), "money-records"
    list_display = ("created_at", "what", "subject", "steps", "reason", "actor")
    list_filter = (ActorFilter, TableFilter, "created_at")
    list_select_related = ("actor",)
    search_fields = ("reason",)
    ordering = ("-link",)
    fields = ("created_at", "what", "subject", "steps", "reason", "actor", "link", "chain")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return filter_history()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeyedPage]:
        return RecordChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row: Any = super().get_object(request, object_id, from_field)
        if row is not None:
            (row.change,) = describe_changes([row])
        return row

    @admin.display(description=_("what"))
    def what(self, row: Any) -> str:
        return f"{row.change.table}: {row.change.verb}"

    @admin.display(description=_("whose"))
    def subject(self, row: Any) -> str:
        return format_html("<bdi>{}</bdi>", row.change.subject)

    @admin.display(description=_("from → to"))
    def steps(self, row: Any) -> str:
        parts = ((one.name, one.before, one.after) for one in row.change.steps)
        return format_html_join("", "<div>{}: <bdi>{}</bdi> → <bdi>{}</bdi></div>", parts)
