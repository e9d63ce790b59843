"""The page My usage: the cost of a person's calls, what is left of budgets, the calls as CSV.

The figures are those of the ledger; staff see the same page of a person in the admin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from conversations.accounts.preferences import read_preferences
from conversations.budgets.caps import list_turn_caps
from conversations.budgets.notices import (
    Limits,
    dismiss_notice,
    find_conversation_limits,
    find_limits,
)
from conversations.budgets.own_limit import OwnLimitRefused, set_own_limit
from conversations.budgets.units import MONEY, format_amount
from conversations.budgets.usage import charts, days
from conversations.budgets.usage.allowance import list_allowances
from conversations.budgets.usage.groups import name_model
from conversations.budgets.usage.person import sum_usage
from conversations.budgets.usage.statement import list_statement_rows
from conversations.conf import conf
from conversations.library.access import (
    find_live_turn,
    list_usable_models,
    load_owned_conversation,
)
from conversations.live.publish import publish_spending
from conversations.toolbox.toolset import offers_search
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user
from conversations.web.streamed_downloads import stream_rows

if TYPE_CHECKING:
    from conversations.models import Conversation, User


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return _render_page(request)


def _render_page(
    request: HttpRequest, own: dict[str, str] | None = None, status: int = 200
) -> HttpResponse:
    """Render the page; `own` is the amount that was refused as an own limit, and why."""
    user = require_user(request)
    spending = build_usage_context(user, read_span(request))
    context = build_page_context(request) | spending
    set_by_them = next((one for one in spending["allowances"] if one.is_own), None)
    amount = "" if set_by_them is None else format_amount(set_by_them.limit, MONEY.name)
    more = {"own": own or {"amount": amount}, "has_own_limit": set_by_them is not None}
    return render(request, "conversations/usage.html", context | more, status=status)


@login_required
@require_POST
def limit_oneself(request: HttpRequest) -> HttpResponse:
    """Set, change or remove the person's limit for themselves, from the next call on."""
    user, amount = require_user(request), request.POST.get("amount", "")[:60]
    if "remove" in request.POST:
        amount = ""
    elif "amount" not in request.POST:
        raise BadRequest("no amount")
    try:
        set_own_limit(user=user, text=amount)
    except OwnLimitRefused as error:
        return _render_page(request, {"amount": amount, "error": error.text}, 400)
    async_to_sync(publish_spending)(user.pk)
    return redirect("usage")


@login_required
@require_safe
def calls(request: HttpRequest) -> HttpResponseBase:
    """Send the calls of the span as CSV, streamed."""
    span = read_span(request)
    name = f"agentweb-calls-{span.first}-{span.last}.csv"
    return stream_rows(request, list_statement_rows(require_user(request), span), name)


@login_required
@require_safe
def notices(request: HttpRequest) -> HttpResponse:
    """Return the budget notices of a page, or 204 when it already shows them (`seen`).

    Pages with notices poll this, so that changes made in other processes and new budget windows
    reach them.
    """
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("usage")
    conversation, found = _read_limits(request)
    if found.key == request.GET.get("seen"):
        return HttpResponse(status=204)
    return _render_limits(request, conversation, found)


@login_required
@require_POST
def dismiss(request: HttpRequest) -> HttpResponse:
    """Dismiss a notice in every tab."""
    user = require_user(request)
    dismiss_notice(user_id=user.pk, name=request.POST.get("notice", ""))
    async_to_sync(publish_spending)(user.pk)
    user.refresh_from_db(fields=["preferences"])
    conversation, found = _read_limits(request)
    if request.htmx:  # type: ignore[attr-defined]
        return _render_limits(request, conversation, found)
    return redirect("chat", conversation.public_id) if conversation else redirect("new_chat")


def _read_limits(request: HttpRequest) -> tuple[Conversation | None, Limits]:
    """Return the notices of the page: those of its conversation, or of a new one."""
    user, name = require_user(request), request.GET.get("chat", "")
    away = read_preferences(user.preferences)
    if not name:
        usable, wanted = list_usable_models(user.pk), request.GET.get("model", "")
        model = wanted if wanted in usable else away.model if away.model in usable else conf.model
        return None, find_limits(user.pk, model, put_away=away.put_away)
    try:
        conversation = load_owned_conversation(user, UUID(name))
    except ValueError as error:
        raise Http404("no such conversation") from error
    found = find_conversation_limits(conversation, searches=offers_search, put_away=away.put_away)
    return conversation, found


def _render_limits(
    request: HttpRequest, conversation: Conversation | None, found: Limits
) -> HttpResponse:
    turn = find_live_turn(conversation) if conversation is not None else None
    number = turn.number if turn is not None else 0
    context = {"conversation": conversation, "limits": found, "live_turn": number}
    return render(request, "conversations/_partials/limits_moved.html", context)


def read_span(request: HttpRequest) -> days.Span:
    return days.read_span(request.GET.dict(), timezone.now().date())


def build_usage_context(user: User, span: days.Span, *, is_named: bool = True) -> dict[str, Any]:
    """Return the template context about a person's spending."""
    usage = sum_usage(user, span, is_named=is_named)
    return {
        "span": span,
        "usage": usage,
        "allowances": list_allowances(user.pk),
        "caps": list_turn_caps(user.pk),
        "money": charts.draw_money_by_day(span, usage.groups, name_model),
        "tokens": charts.draw_tokens_by_day(span, usage.groups),
    }
