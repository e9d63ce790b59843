"""CSV imports: a preview of the effect of each line, then all lines or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from conversations.admin.budget_action_forms import OptionalReason
from conversations.budgets import import_budgets, import_prices
from conversations.budgets.csv_import import MOST_CHARS, Plan
from conversations.models import User


class SheetForm(forms.Form):
    """A file or its text; after the preview the text alone, with the preview's digest."""

    file = forms.FileField(
        label=_("File"),
        required=False,
        widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}),
    )
    text = forms.CharField(
        label=_("Or its text"), required=False, max_length=MOST_CHARS, strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )  # fmt: skip
    reason = OptionalReason()
    digest = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("file"):
            if data["file"].size > MOST_CHARS * 4:
                raise forms.ValidationError(
                    _("A file has at most %(count)s characters.") % {"count": f"{MOST_CHARS:,}"}
                )
            try:
                data["text"] = data["file"].read().decode()
            except UnicodeDecodeError as error:
                raise forms.ValidationError(_("The file is not UTF-8 text.")) from error
        if not data.get("text", "").strip() and not self.errors:
            raise forms.ValidationError(_("Choose a file, or paste its text."))
        return data


@dataclass(frozen=True, slots=True)
class ImportKind:
    """One kind of import: its texts, its permission and its functions."""

    title: Promise
    columns: Sequence[str]
    needed: tuple[str, ...]
    take: Callable[[str, User, str], Plan]
    back: str
    help_text: Promise


BUDGETS = ImportKind(
    title=_("Take in budgets"),
    columns=import_budgets.COLUMNS,
    needed=("conversations.add_budget", "conversations.change_budget"),
    take=lambda text, actor, expected: import_budgets.import_budgets(
        text=text, actor=actor, expected=expected
    ),
    back="admin:conversations_budget_changelist",
    help_text=_("A limit of money is in dollars. active: yes or no. What is empty stays as it is."),
)
PRICES = ImportKind(
    title=_("Take in prices"),
    columns=import_prices.COLUMNS,
    needed=("conversations.add_modelprice", "conversations.change_modelprice"),
    take=lambda text, actor, expected: import_prices.import_prices(
        text=text, actor=actor, expected=expected
    ),
    back="admin:conversations_modelprice_changelist",
    help_text=_("The last three may be empty. A new price closes the one before it."),
)


def may_import(request: HttpRequest, kind: ImportKind = BUDGETS) -> bool:
    return request.user.has_perms(kind.needed)


def page(request: HttpRequest, kind: ImportKind = BUDGETS) -> HttpResponse:
    """Show the form or the preview of the sent lines, or import the previewed ones."""
    if not may_import(request, kind):
        raise PermissionDenied
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    if request.method != "POST":
        return _page(request, kind, SheetForm())
    form = SheetForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, kind, form)
    text, expected = form.cleaned_data["text"], form.cleaned_data["digest"]
    is_wanted = "confirm" in request.POST
    plan = kind.take(text, request.user, expected if is_wanted else "")
    if plan.is_kept:
        told = _("%(changes)s of %(lines)s lines were changes.")
        messages.success(request, told % {"changes": plan.changes, "lines": len(plan.lines)})
        return HttpResponseRedirect(reverse(kind.back))
    if is_wanted and not plan.errors:
        form.add_error(None, _("Something changed since the preview: look at it again."))
    reason = form.cleaned_data["reason"]
    shown = SheetForm(initial={"text": text, "digest": plan.digest, "reason": reason})
    return _page(request, kind, shown, plan, form.non_field_errors())


def prices(request: HttpRequest) -> HttpResponse:
    return page(request, PRICES)


def _page(
    request: HttpRequest,
    kind: ImportKind,
    form: SheetForm,
    plan: Plan | None = None,
    problems: Any = (),
) -> HttpResponse:
    context = admin.site.each_context(request) | {
        "title": kind.title,
        "kind": kind,
        "back": reverse(kind.back),
        "form": form,
        "plan": plan,
        "problems": problems or form.non_field_errors(),
    }
    is_wrong = form.errors or problems or (plan is not None and plan.errors)
    page = "admin/conversations/import.html"
    return TemplateResponse(request, page, context, status=400 if is_wrong else 200)
