"""What staff do to budgets: grant, correct, exempt; each with a reason.

A form, then a page that says what would be done, then the action. The form carries a key, so that
sending the last page twice acts once.
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

from conversations.admin.budget_action_forms import CorrectionForm, GrantForm, ReasonForm
from conversations.budgets.grants import BudgetError, correct_window, grant_more, set_exempt
from conversations.budgets.units import show_amount
from conversations.models import Budget, BudgetWindow, User
from conversations.models.periods import format_moment

GRANT, CORRECT = "conversations.add_grant", "conversations.add_ledgerentry"


@dataclass(frozen=True, slots=True)
class BudgetAction:
    """One kind of action: its texts, its form, its preview, and the function that performs it."""

    title: str
    subject: str
    form: Callable[..., ReasonForm]
    told: Callable[[dict[str, Any]], list[str]]
    do: Callable[[dict[str, Any], User], str]
    back: str
    initial: dict[str, Any] = field(default_factory=dict)


def run_action(request: HttpRequest, deed: BudgetAction) -> HttpResponse:
    """Show the form or the preview, or perform the action and redirect."""
    if request.method != "POST":
        form = deed.form(initial=deed.initial | {"form": uuid4()})
        return _render_form(request, deed, form)
    form = deed.form(request.POST)
    if not form.is_valid() or "confirm" not in request.POST or "change" in request.POST:
        is_told = form.is_valid() and "change" not in request.POST
        return _render_form(request, deed, form, deed.told(form.cleaned_data) if is_told else [])
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    try:
        said = deed.do(form.cleaned_data, request.user)
    except BudgetError as error:
        form.add_error(None, str(error))
        return _render_form(request, deed, form)
    messages.success(request, said)
    return HttpResponseRedirect(deed.back)


def _render_form(
    request: HttpRequest, deed: BudgetAction, form: ReasonForm, told: list[str] | None = None
) -> HttpResponse:
    context = admin.site.each_context(request) | {
        "title": deed.title,
        "subtitle": None,
        "deed": deed,
        "form": form,
        "told": told or [],
    }
    status = 400 if form.errors else 200
    return TemplateResponse(request, "admin/conversations/change.html", context, status=status)


def grant(request: HttpRequest, object_id: str) -> HttpResponse:
    """Grant more of a budget, to all it applies to or, with ?user=, to one person."""
    budget = _load_permitted_row(
        request, GRANT, Budget.objects.select_related("user", "group"), object_id
    )
    person = User.objects.filter(pk=_parse_key(request.GET.get("user", ""))).first()

    def told(given: dict[str, Any]) -> list[str]:
        user, until = given.get("user"), given["until"]
        who = user or budget.user or ("all members" if budget.group_id else "everybody")
        ends = f"until {format_moment(until, budget.time_zone)}" if until else "without end"
        return [
            f"{show_amount(given['amount'], budget.unit)} more for {who}, {ends}.",
            given["reason"],
        ]

    def do(given: dict[str, Any], actor: User) -> str:
        made = grant_more(
            budget=budget, amount=given["amount"], reason=given["reason"], until=given["until"],
            user=given.get("user"), form=given["form"], actor=actor,
        )  # fmt: skip
        return f"{show_amount(made.amount, budget.unit)} more were granted."

    return run_action(
        request,
        BudgetAction(
            title="Give a grant",
            subject=name_subject(budget),
            form=lambda *args, **kwargs: GrantForm(*args, budget=budget, **kwargs),
            told=told,
            do=do,
            back=_build_return_address(request, budget, person),
            initial={"user": person.username if person else ""},
        ),
    )


def correct(request: HttpRequest, object_id: str) -> HttpResponse:
    """Correct what a window has spent, by an entry of the ledger."""
    rows = BudgetWindow.objects.select_related("budget__group", "budget__user", "user")
    window = _load_permitted_row(request, CORRECT, rows, object_id)
    unit = window.budget.unit

    def told(given: dict[str, Any]) -> list[str]:
        after = window.spent + given["amount"]
        step = f"Spent: {show_amount(window.spent, unit)} → {show_amount(after, unit)}."
        return [step if after >= 0 else f"{step} That is not possible.", given["reason"]]

    def do(given: dict[str, Any], actor: User) -> str:
        made = correct_window(
            window_id=window.pk, amount=given["amount"], reason=given["reason"],
            form=given["form"], actor=actor,
        )  # fmt: skip
        return f"Entry {made.pk} corrects the window by {show_amount(made.amount, unit)}."

    since = format_moment(window.starts_at, window.budget.time_zone)
    return run_action(
        request,
        BudgetAction(
            title="Correct what is spent",
            subject=f"{name_subject(window.budget, window.user)}, the window from {since}",
            form=lambda *args, **kwargs: CorrectionForm(*args, unit=unit, **kwargs),
            told=told,
            do=do,
            back=reverse("admin:conversations_budgetwindow_change", args=[window.pk]),
        ),
    )


def exempt(request: HttpRequest, object_id: str) -> HttpResponse:
    """Exempt a person from budgets with ?to=on, or end that."""
    if not getattr(request.user, "is_superuser", False):
        raise PermissionDenied
    user = get_object_or_404(User, pk=_parse_key(object_id))
    wanted = request.GET.get("to") == "on"
    words = "Nothing is held or refused any more; what calls cost is recorded all the same."

    def do(given: dict[str, Any], actor: User) -> str:
        set_exempt(user=user, is_exempt=wanted, reason=given["reason"], actor=actor)
        return f"{user} is {'exempt from budgets' if wanted else 'no longer exempt'}."

    return run_action(
        request,
        BudgetAction(
            title="Exempt from budgets" if wanted else "Exempt no longer",
            subject=user.username,
            form=ReasonForm,
            told=lambda given: [
                words if wanted else "Budgets count again from the next call on.",
                given["reason"],
            ],
            do=do,
            back=reverse("admin:conversations_user_change", args=[user.pk]),
        ),
    )


def name_subject(budget: Budget, user: User | None = None) -> str:
    """Return the name of a budget, and of the person whose window it is."""
    owner = budget.user or budget.group or "the site"
    whose = f", {user}" if user and user != budget.user else ""
    return f"{budget} ({budget.get_kind_display()}) of {owner}{whose}"


def _load_permitted_row(request: HttpRequest, permission: str, rows: Any, object_id: str) -> Any:
    """Return the row if the user may change and see it; raises otherwise."""
    view = f"conversations.view_{rows.model._meta.model_name}"
    if not request.user.has_perms((permission, view)):
        raise PermissionDenied
    return get_object_or_404(rows, pk=_parse_key(object_id))


def _parse_key(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _build_return_address(request: HttpRequest, budget: Budget, person: User | None) -> str:
    if person is not None and request.user.has_perm("conversations.view_user"):
        return reverse("admin:conversations_user_change", args=[person.pk])
    return reverse("admin:conversations_budget_change", args=[budget.pk])
