"""Lists of the admin as CSV or JSON lines: the filtered list, written while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from conversations.admin.base import ShownLookups
from conversations.budgets.import_budgets import COLUMNS
from conversations.budgets.money_history import describe_changes
from conversations.budgets.units import convert_to_cell
from conversations.budgets.usage.cells import Cell
from conversations.log.findings import read_leniently
from conversations.web.streamed_downloads import stream_rows

#: Rows read at a time: of a thousand SQLite does not find the related rows any more.
PAGE = 500
Rows = Iterator[tuple[Cell, ...]]

_LEDGER = (
    "entry", "at (UTC)", "kind", "amount", "unit", "budget", "period", "window", "user", "group",
    "purpose", "model", "cost centre", "call", "reason", "by",
)  # fmt: skip

_RECORDS = (
    "record", "at (UTC)", "table", "row", "whose", "change", "field", "from", "to", "reason", "by",
)  # fmt: skip


class SentAsFiles(ShownLookups):
    """A list that can be had as CSV and as JSON lines, with its present filters.

    `sheet` writes its rows, the names first; `word` is the name of the files.
    """

    sheet: Callable[[QuerySet[Any]], Rows]
    word: str

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.send_file)
        files = [
            path(f"export.{ending}", view, {"ending": ending}, f"{self.word}_{ending}")
            for ending in ("csv", "jsonl")
        ]
        return [*files, *super().get_urls()]

    def send_file(self, request: HttpRequest, ending: str) -> HttpResponseBase:
        """Send the rows of the list to users who may view it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise Http404("no such list") from error
        return stream_rows(request, type(self).sheet(rows), f"agentweb-{self.word}.{ending}")

    def list_files(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Return labels and addresses of the links above the list."""
        return [
            (_("Download CSV"), _build_address(request, f"{self.word}_csv")),
            (_("Download JSON lines"), _build_address(request, f"{self.word}_jsonl")),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        more = {"files": self.list_files(request)}
        return super().changelist_view(request, (extra_context or {}) | more)


def _build_address(request: HttpRequest, name: str) -> str:
    """Return the address of a page of the admin, with the present filters."""
    query = request.GET.urlencode()
    return reverse(f"admin:{name}") + (f"?{query}" if query else "")


def write_budgets(rows: QuerySet[Any]) -> Rows:
    yield COLUMNS
    for row in iterate_rows(rows):
        subject = row.user.username if row.user else row.group.name if row.group else ""
        yield (
            row.scope, subject, row.kind, row.unit, row.period,
            convert_to_cell(row.limit, row.unit), row.time_zone, row.soft_percents,
            "yes" if row.is_active else "no", row.note, row.model,
        )  # fmt: skip


def write_ledger(rows: QuerySet[Any]) -> Rows:
    yield _LEDGER
    for row in iterate_rows(rows):
        budget, call = row.window.budget, row.call
        yield (
            row.pk, _format_time(row.created_at), row.kind,
            convert_to_cell(row.amount, budget.unit), budget.unit,
            budget.pk, budget.period, _format_time(row.window.starts_at),
            row.window.user.username if row.window.user else "",
            budget.group.name if budget.group else "",
            call.purpose if call else "", call.model if call else "",
            call.cost_centre.code if call and call.cost_centre else "", call.pk if call else None,
            row.reason, row.actor.username if row.actor else "",
        )  # fmt: skip


def write_money_records(rows: QuerySet[Any]) -> Rows:
    """Write a line for each value that was changed."""
    yield _RECORDS
    for page in iterate_pages(rows):
        changes = read_leniently(partial(describe_changes, page))
        for row, change in zip(page, changes, strict=True):
            for step in change.steps:
                yield (
                    row.pk, _format_time(row.created_at), row.table, row.key, change.subject,
                    change.verb, step.name, step.before, step.after, row.reason,
                    row.actor.username if row.actor else "",
                )  # fmt: skip


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def iterate_rows(rows: QuerySet[Any]) -> Iterator[Any]:
    """Yield all rows, newest first."""
    for page in iterate_pages(rows):
        yield from page


def iterate_pages(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """Yield the pages of all rows, newest first; a text that is damaged has U+FFFD."""
    ordered, last = rows.order_by("-pk"), None
    while True:
        some = (ordered if last is None else ordered.filter(pk__lt=last))[:PAGE]
        page: list[Any] = read_leniently(partial(list, some))
        yield page
        if len(page) < PAGE:
            return
        last = page[-1].pk
