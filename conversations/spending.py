"""My usage: what my calls have cost, what I may still spend, and the same as a file.

The figures are those of the ledger; staff see the same page of a person in the admin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from conversations.history.frame import frame
from conversations.history.streams import download
from conversations.queries.spending import days, pictures
from conversations.queries.spending.allowance import allowances
from conversations.queries.spending.cells import csv_lines
from conversations.queries.spending.groups import model_name
from conversations.queries.spending.statement import statement
from conversations.queries.spending.usage import usage_of
from conversations.views import person

if TYPE_CHECKING:
    from conversations.models import User


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    context = frame(request) | shown(person(request), span_of(request))
    return render(request, "conversations/usage.html", context)


@login_required
@require_safe
def calls(request: HttpRequest) -> StreamingHttpResponse:
    """Give the calls of the span as CSV, written while it is read."""
    span = span_of(request)
    name = f"agentweb-calls-{span.first}-{span.last}.csv"
    lines = csv_lines(statement(person(request), span))
    return download(request, lines, name, "text/csv; charset=utf-8")


def span_of(request: HttpRequest) -> days.Span:
    return days.asked(request.GET.dict(), timezone.now().date())


def shown(user: User, span: days.Span, *, is_named: bool = True) -> dict[str, object]:
    """Give what a page about a person's spending shows."""
    usage = usage_of(user, span, is_named=is_named)
    return {
        "span": span,
        "usage": usage,
        "allowances": allowances(user.pk),
        "money": pictures.money_by_day(span, usage.groups, model_name),
        "tokens": pictures.tokens_by_day(span, usage.groups),
    }
