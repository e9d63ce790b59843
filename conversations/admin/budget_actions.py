"""Actions of staff on budgets: grant, correct, exempt; each with a reason.

First a form, then a page that shows the effect, then the action. The form carries a key, so that
posting the last page twice has the effect of one post.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from conversations.admin.base import parse_key
from conversations.admin.budget_action_forms import CorrectionForm, GrantForm, ReasonForm
from conversations.budgets.grants import (
    BudgetError,
    correct_call,
    correct_window,
    grant_more,
    list_booked_windows,
    set_exempt,
)
from conversations.budgets.units import show_amount
from conversations.models import ApiCall, Budget, BudgetWindow, User
from conversations.models.periods import format_moment

GRANT, CORRECT = "conversations.add_grant", "conversations.add_ledgerentry"


@dataclass(frozen=True, slots=True)
class BudgetAction:
    """One kind of action: its texts, its form, its preview, and the function that performs it."""

    title: str
    subject: str
    form: Callable[..., ReasonForm]
    preview: Callable[[dict[str, Any]], list[str]]
    perform: Callable[[dict[str, Any], User], str]
    back: str
    initial: dict[str, Any] = field(default_factory=dict)


def run_action(request: HttpRequest, action: BudgetAction) -> HttpResponse:
    """Show the form or the preview, or perform the action and redirect."""
    if request.method != "POST":
        form = action.form(initial=action.initial | {"form": uuid4()})
        return _render_form(request, action, form)
    form = action.form(request.POST)
    if not form.is_valid() or "confirm" not in request.POST or "change" in request.POST:
        is_previewed = form.is_valid() and "change" not in request.POST
        return _render_form(
            request, action, form, action.preview(form.cleaned_data) if is_previewed else []
        )
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    try:
        done = action.perform(form.cleaned_data, request.user)
    except BudgetError as error:
        form.add_error(None, str(error))
        return _render_form(request, action, form)
    messages.success(request, done)
    return HttpResponseRedirect(action.back)


def _render_form(
    request: HttpRequest, action: BudgetAction, form: ReasonForm, preview: list[str] | None = None
) -> HttpResponse:
    context = admin.site.each_context(request) | {
        "title": action.title,
        "subtitle": None,
        "action": action,
        "form": form,
        "preview": preview or [],
    }
    status = 400 if form.errors else 200
    return TemplateResponse(request, "admin/conversations/change.html", context, status=status)


def grant(request: HttpRequest, object_id: str) -> HttpResponse:
    """Grant more of a budget, to all it applies to or, with ?user=, to one person."""
    budget = _load_permitted_row(
        request, GRANT, Budget.objects.select_related("user", "group"), object_id
    )
    person = User.objects.filter(pk=parse_key(request.GET.get("user", ""))).first()

    def preview(data: dict[str, Any]) -> list[str]:
        user, until = data.get("user"), data["until"]
        who = user or budget.user or (_("all members") if budget.group_id else _("everybody"))
        ends = _("without end")
        if until:
            ends = _("until %(when)s") % {"when": format_moment(until, budget.time_zone)}
        amount = show_amount(data["amount"], budget.unit)
        words = _("%(amount)s more for %(who)s, %(ends)s.")
        return [words % {"amount": amount, "who": who, "ends": ends}, data["reason"]]

    def perform(data: dict[str, Any], actor: User) -> str:
        granted = grant_more(
            budget=budget, amount=data["amount"], reason=data["reason"], until=data["until"],
            user=data.get("user"), form=data["form"], actor=actor,
        )  # fmt: skip
        words = _("%(amount)s more were granted.")
        return words % {"amount": show_amount(granted.amount, budget.unit)}

    return run_action(
        request,
        BudgetAction(
            title=_("Give a grant"),
            subject=name_subject(budget),
            form=lambda *args, **kwargs: GrantForm(*args, budget=budget, **kwargs),
            preview=preview,
            perform=perform,
            back=_build_return_address(request, budget, person),
            initial={"user": person.username if person else ""},
        ),
    )


def correct(request: HttpRequest, object_id: str) -> HttpResponse:
    """Correct the spent amount of a window by an entry of the ledger."""
    rows = BudgetWindow.objects.select_related("budget__group", "budget__user", "user")
    window = _load_permitted_row(request, CORRECT, rows, object_id)
    unit = window.budget.unit

    def preview(data: dict[str, Any]) -> list[str]:
        return [_preview_correction(window, data["amount"]), data["reason"]]

    def perform(data: dict[str, Any], actor: User) -> str:
        entry = correct_window(
            window_id=window.pk, amount=data["amount"], reason=data["reason"],
            form=data["form"], actor=actor,
        )  # fmt: skip
        words = _("Entry %(number)s corrects the window by %(amount)s.")
        return words % {"number": entry.pk, "amount": show_amount(entry.amount, unit)}

    since = format_moment(window.starts_at, window.budget.time_zone)
    return run_action(
        request,
        BudgetAction(
            title=_("Correct what is spent"),
            subject=_("%(budget)s, the window from %(since)s")
            % {"budget": name_subject(window.budget, window.user), "since": since},
            form=lambda *args, **kwargs: CorrectionForm(*args, unit=unit, **kwargs),
            preview=preview,
            perform=perform,
            back=reverse("admin:conversations_budgetwindow_change", args=[window.pk]),
        ),
    )


def correct_cost(request: HttpRequest, object_id: str) -> HttpResponse:
    """Correct the cost of a call in every budget that it was booked to."""
    call = _load_permitted_row(request, CORRECT, ApiCall.objects.all(), object_id)
    windows = list_booked_windows(call.pk)

    def preview(data: dict[str, Any]) -> list[str]:
        steps = [
            f"{name_subject(window.budget, window.user)}: "
            + _preview_correction(window, data["amount"])
            for window in windows
        ]
        return [*(steps or [_("The call was booked to no budget of money.")]), data["reason"]]

    def perform(data: dict[str, Any], actor: User) -> str:
        entries = correct_call(
            call_id=call.pk, amount=data["amount"], reason=data["reason"], form=data["form"],
            actor=actor,
        )  # fmt: skip
        amount = show_amount(data["amount"], Budget.Unit.MONEY)
        words = _("The call is corrected by %(amount)s, in %(count)d budgets.")
        return words % {"amount": amount, "count": len(entries)}

    return run_action(
        request,
        BudgetAction(
            title=_("Correct the cost of a call"),
            subject=_("Call %(number)s, of %(model)s") % {"number": call.pk, "model": call.model},
            form=lambda *args, **kwargs: CorrectionForm(*args, unit="money", **kwargs),
            preview=preview,
            perform=perform,
            back=reverse("admin:conversations_apicall_change", args=[call.pk]),
        ),
    )


def _preview_correction(window: BudgetWindow, amount: int) -> str:
    used, unit = window.spent + window.overrun, window.budget.unit
    parts = {"before": show_amount(used, unit), "after": show_amount(used + amount, unit)}
    if used + amount < 0:
        return _("Spent: %(before)s → %(after)s. That is not possible.") % parts
    return _("Spent: %(before)s → %(after)s.") % parts


def exempt(request: HttpRequest, object_id: str) -> HttpResponse:
    """Exempt a person from budgets with ?to=on, or end that."""
    if not getattr(request.user, "is_superuser", False):
        raise PermissionDenied
    user = get_object_or_404(User, pk=parse_key(object_id))
    wanted = request.GET.get("to") == "on"
    words = _("Nothing is held or refused any more; what calls cost is recorded all the same.")

    def perform(data: dict[str, Any], actor: User) -> str:
        set_exempt(user=user, is_exempt=wanted, reason=data["reason"], actor=actor)
        if wanted:
            return _("%(user)s is exempt from budgets.") % {"user": user}
        return _("%(user)s is no longer exempt.") % {"user": user}

    return run_action(
        request,
        BudgetAction(
            title=_("Exempt from budgets") if wanted else _("Exempt no longer"),
            subject=user.username,
            form=ReasonForm,
            preview=lambda data: [
                words if wanted else _("Budgets count again from the next call on."),
                data["reason"],
            ],
            perform=perform,
            back=reverse("admin:conversations_user_change", args=[user.pk]),
        ),
    )


def name_subject(budget: Budget, user: User | None = None) -> str:
    """Return the name of a budget, and of the person whose window it is."""
    owner = budget.user or budget.group or _("the site")
    name = _("%(budget)s (%(kind)s) of %(owner)s") % {
        "budget": budget, "kind": budget.get_kind_display(), "owner": owner
    }  # fmt: skip
    return f"{name}, {user}" if user and user != budget.user else name


def _load_permitted_row(request: HttpRequest, permission: str, rows: Any, object_id: str) -> Any:
    """Return the row if the user may change and see it; raises otherwise."""
    view = f"conversations.view_{rows.model._meta.model_name}"
    if not request.user.has_perms((permission, view)):
        raise PermissionDenied
    return get_object_or_404(rows, pk=parse_key(object_id))


def _build_return_address(request: HttpRequest, budget: Budget, person: User | None) -> str:
    if person is not None and request.user.has_perm("conversations.view_user"):
        return reverse("admin:conversations_user_change", args=[person.pk])
    return reverse("admin:conversations_budget_change", args=[budget.pk])
