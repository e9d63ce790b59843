"""The forms of budgets and of caps of a turn, on their own pages and on that of their person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from conversations.conf import conf
from conversations.models import Budget, TurnCap, User
from conversations.templatetags.agentweb import worth

if TYPE_CHECKING:
    _Inline = admin.TabularInline[Budget, User]
    _CapInline = admin.StackedInline[TurnCap, User]
    _Form = forms.ModelForm[Budget]
    _FormSet = forms.BaseInlineFormSet[Budget, User, forms.ModelForm[Budget]]
else:
    _Inline, _CapInline, _Form = admin.TabularInline, admin.StackedInline, forms.ModelForm
    _FormSet = forms.BaseInlineFormSet

#: What the windows of a budget were cut by.
FIXED = ("scope", "group", "user", "kind", "unit", "period", "time_zone")


class BudgetForm(_Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding and "time_zone" in self.fields:
            self.fields["time_zone"].initial = conf.budget_time_zone

    def clean(self) -> dict[str, Any]:
        super().clean()
        budget = self.instance
        if budget.pk and budget.windows.exists():
            for name in set(self.changed_data) & set(FIXED):
                self.add_error(name, "Already in use: switch this one off and add another.")
        return self.cleaned_data


class BudgetFormSet(_FormSet):
    def clean(self) -> None:
        super().clean()
        here = [form.instance.pk for form in self.forms if form.instance.pk]
        others = Budget.objects.filter(user=self.instance, is_active=True).exclude(pk__in=here)
        active = [
            *others.values_list("unit", "period"),
            *(
                (form.cleaned_data.get("unit"), form.cleaned_data["period"])
                for form in self.forms
                if form.is_valid() and form.cleaned_data.get("is_active") and _is_used(form)
            ),
        ]
        if len(active) != len(set(active)):
            raise ValidationError("Only one active budget for each unit and period.")


def _is_used(form: Any) -> bool:
    return bool(form.instance.pk) or form.has_changed()


class BudgetInline(_Inline):
    """A person's own budgets; how they stand is above, among those that count."""

    model = Budget
    form = BudgetForm
    formset = BudgetFormSet
    verbose_name_plural = "budgets of this person's own"
    extra = 0
    can_delete = False
    fields = ("unit", "period", "time_zone", "limit", "in_words", "is_active", "note")
    readonly_fields = ("in_words",)

    @admin.display(description="in words")
    def in_words(self, budget: Budget) -> str:
        return worth(budget.limit, budget.unit) if budget.pk else "–"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class TurnCapInline(_CapInline):
    model = TurnCap
    verbose_name_plural = "caps of a turn, this person's own"
    extra = 1
    max_num = 1
    fields = (("micros", "rounds", "tool_calls", "seconds"),)


def limit_told(form: Any) -> list[dict[str, Any]]:
    """Say for the audit from what to what a limit was changed."""
    if "limit" not in form.changed_data:
        return []
    before, budget = form.initial["limit"], form.instance
    step = f"{worth(before, budget.unit)} → {worth(budget.limit, budget.unit)}"
    return [{"changed": {"name": "limit a", "object": budget.period, "fields": [step]}}]
