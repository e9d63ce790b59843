"""A provider's report beside the record: what differs, and one button that books it.

The comparison is the preview. The page keeps the report's text, so that what is booked is compared
anew, and a second click finds it booked.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import date
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from conversations.admin.budget_actions import CORRECT
from conversations.admin.csv_import import SheetForm
from conversations.budgets.booked_differences import (
    Pools,
    Wanted,
    book_differences,
    is_over,
    load_pools,
)
from conversations.budgets.grants import BudgetError
from conversations.budgets.usage.provider_report import (
    Comparison,
    Difference,
    Report,
    ReportError,
    compare_with_record,
    read_report,
)
from conversations.models import Budget, User
from conversations.rendering.numbers import write_number

NEEDED = ("conversations.view_apicall", "conversations.view_ledgerentry")
BOOKING = (CORRECT, "conversations.view_budget", "conversations.view_budgetwindow")
TITLE = _("Compare with the provider’s report")
#: Differences that can be marked at once.
MOST_MARKED = 500


def may_see(request: HttpRequest) -> bool:
    return request.user.has_perms(NEEDED)


def page(request: HttpRequest) -> HttpResponse:
    """Show the form or the comparison, or book what is marked and show it anew."""
    if not may_see(request):
        raise PermissionDenied
    if request.method != "POST":
        return _render(request, SheetForm())
    if "book" in request.POST and not request.user.has_perms(BOOKING):
        raise PermissionDenied
    form = SheetForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render(request, form)
    text = form.cleaned_data["text"].removeprefix("\ufeff")
    try:
        report = read_report(io.StringIO(text, newline=""))
        if "book" in request.POST:
            _book(request, report, form.cleaned_data["reason"])
    except ReportError as error:
        form.add_error(None, str(error))
        return _render(request, form)
    except BudgetError as error:
        form.add_error(None, str(error))
    return _render(request, form, text, compare_with_record(report))


def _book(request: HttpRequest, report: Report, reason: str) -> None:
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    wanted = [_read_mark(mark) for mark in request.POST.getlist("row")]
    if not wanted:
        raise BudgetError(_("Mark what is to be booked."))
    done = book_differences(report=report, wanted=wanted, reason=reason, actor=request.user)
    if not done:
        messages.info(request, _("That is booked already."))
        return
    words = _("Differences booked: %(n)s. Entries of the ledger: %(entries)s.")
    entries = sum(row.windows for row in done)
    messages.success(
        request, words % {"n": write_number(len(done)), "entries": write_number(entries)}
    )


def _write_mark(row: Difference) -> str:
    return f"{row.day} {row.left} {row.model}"


def _read_mark(text: str) -> Wanted:
    day, _space, rest = text.partition(" ")
    amount, _space, model = rest.partition(" ")
    try:
        return Wanted(date.fromisoformat(day).isoformat(), model, int(amount))
    except ValueError as error:
        raise BudgetError(_("Mark what is to be booked.")) from error


def _render(
    request: HttpRequest, form: SheetForm, text: str = "", found: Comparison | None = None
) -> HttpResponse:
    context = admin.site.each_context(request) | {
        "title": TITLE,
        "subtitle": None,
        "form": form,
        "problems": form.non_field_errors(),
    }
    if found is not None:
        shown = SheetForm(initial={"text": text, "reason": form.cleaned_data["reason"]})
        context |= {"form": shown, "found": found, "total": _add_up(found.rows)}
        context |= _list_rows(found, load_pools(found.unit))
        context["may_book"] = context["marks"] and request.user.has_perms(BOOKING)
    status = 400 if form.errors else 200
    return TemplateResponse(request, "admin/provider_report.html", context, status=status)


def _list_rows(found: Comparison, pools: Pools) -> dict[str, Any]:
    """Return the rows, each with its mark where something can be booked, and the pools of those."""
    budgets: dict[int, Budget] = {}
    rows, marks = [], 0
    for row in found.rows:
        day = date.fromisoformat(row.day)
        mark = _write_mark(row) if row.left and is_over(day) and marks < MOST_MARKED else ""
        if mark:
            marks += 1
            budgets |= {each.pk: each for each in pools.list_for(day, row.model)}
        rows.append((row, mark))
    return {"rows": rows, "marks": marks, "budgets": list(budgets.values())}


def _add_up(rows: Iterable[Difference]) -> Difference:
    found = list(rows)
    sums = (sum(getattr(row, name) for row in found) for name in ("reported", "recorded", "booked"))
    return Difference("", "", *sums)
