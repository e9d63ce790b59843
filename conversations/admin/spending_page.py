"""The Spending page: who spends what, near the limit first; limits of people are set in place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils import timezone, translation
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from conversations.admin.base import parse_key
from conversations.admin.bulk_budgets import list_kinds
from conversations.admin.csv_export import iterate_rows
from conversations.budgets.amounts import Unreadable
from conversations.budgets.grants import BudgetError, set_limit
from conversations.budgets.spending import (
    SCOPES,
    filter_people,
    filter_spending,
    read_spending_row,
)
from conversations.budgets.units import (
    MONEY,
    convert_to_cell,
    format_amount,
    parse_amount,
    show_amount,
)
from conversations.budgets.usage.cells import Cell
from conversations.context.translation import mark_recorded
from conversations.models import Budget, BudgetWindow, CostCentre, User
from conversations.web.streamed_downloads import stream_rows

_SET = mark_recorded(gettext_noop("%(amount)s a month for %(person)s, from the next call on."))
_ENDED = mark_recorded(gettext_noop("No monthly limit for %(person)s alone any more."))

NEEDED = ("conversations.view_budget", "conversations.view_budgetwindow", "conversations.view_user")
SETTING = ("conversations.add_budget", "conversations.change_budget")
#: Rows of a page, and rows read at a time for the file.
ROWS, CHUNK = 25, 2_000
#: What the page is filtered by; people by the last three.
_FILTERS = ("scope", "model", "day", "name", "group", "centre")
_COLUMNS = (
    "user", "group", "scope", "unit", "period", "model", "from", "to", "limit", "spent", "held",
    "forecast", "share",
)  # fmt: skip


def may_see(request: HttpRequest) -> bool:
    return request.user.has_perms(NEEDED)


def page(request: HttpRequest) -> HttpResponse:
    if not may_see(request):
        raise PermissionDenied
    if request.method == "POST":
        return _set_limit_for_one(request)
    now, filters = timezone.now(), _read_filters(request)
    windows = Paginator(_filter_rows(filters, now), ROWS)
    people = Paginator(filter_people(*(filters[name] for name in _FILTERS[3:])), ROWS)
    rows = windows.get_page(request.GET.get("p"))
    shown = people.get_page(request.GET.get("q"))
    context = admin.site.each_context(request) | {
        "title": _("Spending"),
        "rows": [read_spending_row(window, now) for window in rows],
        "row_pages": _link_pages(request, "p", rows),
        "people": [(person, _format_own(person)) for person in shown],
        "people_pages": _link_pages(request, "q", shown),
        "may_set": request.user.has_perms(SETTING),
        "may_bulk": bool(list_kinds(request)),
        "filters": filters,
        "scopes": SCOPES,
        "has_centres": CostCentre.objects.exists(),
        "query": urlencode(filters),
    }
    return TemplateResponse(request, "admin/spending.html", context)


def table(request: HttpRequest) -> HttpResponseBase:
    """Send every row of the page as CSV."""
    if not may_see(request):
        raise PermissionDenied
    now = timezone.now()
    rows = _write_rows(_filter_rows(_read_filters(request), now), now)
    return stream_rows(request, rows, "agentweb-spending.csv")


def _link_pages(request: HttpRequest, key: str, page: Page[Any]) -> dict[str, Any]:
    """Return the addresses of the pages before and after this one, with the filters kept."""

    def address(number: int) -> str:
        query = request.GET.copy()
        query[key] = str(number)
        return f"?{query.urlencode()}"

    return {
        "number": page.number,
        "count": page.paginator.num_pages,
        "total": page.paginator.count,
        "before": address(page.number - 1) if page.has_previous() else "",
        "after": address(page.number + 1) if page.has_next() else "",
    }


def _format_own(person: Any) -> str:
    return "" if person.own is None else format_amount(person.own, MONEY.name)


def _write_rows(rows: QuerySet[BudgetWindow], now: datetime) -> Iterator[tuple[Cell, ...]]:
    yield _COLUMNS
    for window in iterate_rows(rows):
        row = read_spending_row(window, now)
        budget, unit = row.budget, row.budget.unit
        ahead = None if row.forecast is None else convert_to_cell(row.forecast, unit)
        yield (
            row.user.username if row.user else "", budget.group.name if budget.group else "",
            budget.scope, unit, budget.period, budget.model, row.starts_at.isoformat(),
            row.ends_at.isoformat() if row.ends_at else "", convert_to_cell(row.limit, unit),
            convert_to_cell(row.spent, unit), convert_to_cell(row.held, unit), ahead,
            row.spent * 100 // row.limit if row.limit else None,
        )  # fmt: skip


def _read_filters(request: HttpRequest) -> dict[str, str]:
    """Return what each filter asks for; "": everything, or the present day."""
    texts = {name: request.GET.get(name, "") for name in _FILTERS}
    found = {name: text.strip().replace("\0", "")[:150] for name, text in texts.items()}
    if found["scope"] not in SCOPES:
        found["scope"] = ""
    try:
        date.fromisoformat(found["day"])
    except ValueError:
        found["day"] = ""
    return found


def _filter_rows(filters: dict[str, str], now: datetime) -> QuerySet[BudgetWindow]:
    texts = {name: text for name, text in filters.items() if name != "day"}
    day = date.fromisoformat(filters["day"]) if filters["day"] else None
    return filter_spending(**texts, day=day, now=now)


def _set_limit_for_one(request: HttpRequest) -> HttpResponse:
    """Set what a person may spend a month, or with an empty amount end the limit for them alone."""
    if not request.user.has_perms(SETTING):
        raise PermissionDenied
    key = parse_key(request.POST.get("user", ""))
    person = get_object_or_404(User, pk=key, is_active=True)
    try:
        said = _change_limit(request, person, request.POST.get("amount", "").strip())
    except (Unreadable, BudgetError) as error:
        said = _("Not set for %(person)s: %(why)s.")
        messages.error(request, said % {"person": person, "why": str(error).rstrip(".")})
    else:
        messages.success(request, said)
    return HttpResponseRedirect(request.get_full_path())


@transaction.atomic
def _change_limit(request: HttpRequest, person: User, text: str) -> str:
    limit = parse_amount(text, MONEY.name) if text else None
    if limit is not None and limit < 0:
        raise BudgetError(_("A limit is not below nothing."))
    set_limit(
        user=person, kind=Budget.Kind.PER_MEMBER, unit=MONEY.name, period=Budget.Period.MONTH,
        limit=limit,
    )  # fmt: skip
    with translation.override("en"):  # the record is in one language
        record = _describe_limit(limit, person)
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    LogEntry.objects.create(
        user=request.user,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(person.pk),
        object_repr=person.username,
        action_flag=CHANGE,
        change_message=record,
    )
    return _describe_limit(limit, person)


def _describe_limit(limit: int | None, person: User) -> str:
    if limit is None:
        return _(_ENDED) % {"person": person}
    return _(_SET) % {"amount": show_amount(limit, MONEY.name), "person": person}
