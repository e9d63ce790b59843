"""Change the limits of many people from the Spending page: form, preview of each person, change."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import parse_key
from conversations.admin.budget_action_forms import ReasonForm, read_last_day
from conversations.budgets.amounts import Unreadable
from conversations.budgets.bulk_changes import (
    BulkChange,
    BulkKind,
    BulkPlan,
    perform_change,
    plan_change,
)
from conversations.budgets.grants import BudgetError
from conversations.budgets.spending import filter_people
from conversations.budgets.units import MONEY, parse_amount
from conversations.conf import conf
from conversations.models import User
from conversations.models.budgets import MOST
from conversations.models.periods import load_zone
from conversations.rendering.numbers import write_number

#: People that a preview lists; it counts and sums all.
MOST_LISTED = 200
_SETTING = ("conversations.add_budget", "conversations.change_budget")
_GRANTING = ("conversations.add_grant",)
_NEEDED = (
    "conversations.view_budget",
    "conversations.view_budgetwindow",
    "conversations.view_user",
)


class BulkForm(ReasonForm):
    kind = forms.ChoiceField(label=_("What to do"))
    amount = forms.CharField(
        label=_("Amount"), max_length=40, required=False,
        help_text=_(
            "Money in dollars. Empty, where a limit is set: the limits for one person alone end."
        ),
    )  # fmt: skip
    until = forms.DateField(
        label=_("Until the end of"), required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
    )  # fmt: skip
    #: What was previewed.
    seen = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    field_order = ("kind", "amount", "until", "reason", "form", "seen")

    def __init__(self, *args: Any, kinds: list[BulkKind], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [(one.value, one.label) for one in kinds]  # type: ignore[attr-defined]
        zone = conf.budget_time_zone
        self.fields["until"].help_text = _(
            "Of a grant; empty: it does not end. Days of %(zone)s."
        ) % {"zone": zone}

    def clean_until(self) -> datetime | None:
        day = self.cleaned_data["until"]
        is_grant = self.cleaned_data.get("kind") == BulkKind.GRANT
        return read_last_day(day, load_zone(conf.budget_time_zone)) if day and is_grant else None

    def clean(self) -> dict[str, Any]:
        data, kind = super().clean() or {}, self.cleaned_data.get("kind")
        text = (data.get("amount") or "").strip()
        unit = BulkKind(kind).unit if kind else MONEY.name
        try:
            amount = parse_amount(text, unit) if text else None
        except Unreadable as error:
            words = _("This is no amount of dollars. Write it as 12.50.")
            shown = words if unit == MONEY.name else str(error)
            raise forms.ValidationError({"amount": shown}) from error
        if kind == BulkKind.GRANT and not (amount and 0 < amount <= MOST):
            raise forms.ValidationError({"amount": _("A grant is more than nothing.")})
        if amount is not None and not 0 <= amount <= MOST:
            raise forms.ValidationError({"amount": _("A limit is not below nothing.")})
        return data | {"amount": amount if kind and BulkKind(kind).has_amount else None}


def page(request: HttpRequest) -> HttpResponse:
    """Show the form or the preview, or make the change and go back to the Spending page."""
    kinds = list_kinds(request)
    if not kinds or not request.user.has_perms(_NEEDED):
        raise PermissionDenied
    people = _choose_people(request)
    if request.method != "POST":
        return _render(request, people, BulkForm(initial={"form": uuid4()}, kinds=kinds))
    form = BulkForm(request.POST, kinds=kinds)
    if not form.is_valid() or "change" in request.POST:
        return _render(request, people, form)
    data = form.cleaned_data
    change = BulkChange(
        BulkKind(data["kind"]), data["amount"], data["until"], data["reason"], data["form"]
    )
    try:
        if "confirm" in request.POST:
            return _perform(request, people, change, data["seen"])
    except BudgetError as error:
        form.add_error(None, str(error))
    return _preview(request, people, form, change)


def _perform(
    request: HttpRequest, people: QuerySet[User], change: BulkChange, seen: str
) -> HttpResponse:
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    plan = perform_change(people=people, change=change, digest=seen, actor=request.user)
    words = _("Changed: %(n)s. Skipped: %(skipped_count)s.")
    done, skipped = write_number(len(plan.done)), write_number(len(plan.skipped))
    messages.success(request, words % {"n": done, "skipped_count": skipped})
    return HttpResponseRedirect(_address_spending(request))


def _preview(
    request: HttpRequest, people: QuerySet[User], form: BulkForm, change: BulkChange
) -> HttpResponse:
    try:
        plan = plan_change(people, change)
    except BudgetError as error:
        form.add_error(None, str(error))
        return _render(request, people, form)
    form.data = {**form.data.dict(), "seen": plan.digest}  # type: ignore[attr-defined]
    return _render(request, people, form, plan)


def _render(
    request: HttpRequest, people: QuerySet[User], form: BulkForm, plan: BulkPlan | None = None
) -> HttpResponse:
    context = admin.site.each_context(request) | {
        "title": _("Change the limits of several people"),
        "subtitle": None,
        "form": form,
        "plan": plan,
        "back": _address_spending(request),
        "count": people.count(),
    }
    if plan is not None:
        before, after = plan.sum_limits()
        context |= {
            "done": plan.done[:MOST_LISTED],
            "skipped": plan.skipped[:MOST_LISTED],
            "more": max(0, len(plan.done) - MOST_LISTED),
            "more_skipped": max(0, len(plan.skipped) - MOST_LISTED),
            "before": before,
            "after": after,
            "zone": conf.budget_time_zone,
            "is_money": plan.kind.has_amount and plan.kind.unit == MONEY.name,
        }
    status = 400 if form.errors else 200
    return TemplateResponse(request, "admin/bulk_budgets.html", context, status=status)


def list_kinds(request: HttpRequest) -> list[BulkKind]:
    """List what this person may do: exempting is for superusers alone, as for one person."""
    may_set = request.user.has_perms(_SETTING)
    found = [kind for kind in BulkKind if may_set and kind.sets_limit]
    if request.user.has_perms(_GRANTING):
        found.append(BulkKind.GRANT)
    if getattr(request.user, "is_superuser", False):
        found += [BulkKind.EXEMPT, BulkKind.COUNTED]
    return found


def _choose_people(request: HttpRequest) -> QuerySet[User]:
    """Return the marked people, or with ?all all those whom the filters of that page show."""
    query = request.GET
    if "all" in query:
        texts = (query.get(name, "") for name in ("name", "group", "centre"))
        return filter_people(*(text.strip().replace("\0", "")[:150] for text in texts))
    return filter_people().filter(pk__in=map(parse_key, query.getlist("user")))


def _address_spending(request: HttpRequest) -> str:
    query = request.GET.copy()
    for name in ("user", "all"):
        query.pop(name, None)
    return f"{reverse('admin:spending')}?{query.urlencode()}"
