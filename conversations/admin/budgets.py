"""Budgets on the user's page: micro-dollars to set, dollars and a bar to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from conversations.models import Budget, User
from conversations.queries.windows import bar, present_window
from conversations.templatetags.agentweb import dollars

if TYPE_CHECKING:
    _Inline = admin.TabularInline[Budget, User]
    _Form = forms.ModelForm[Budget]
    _FormSet = forms.BaseInlineFormSet[Budget, User, forms.ModelForm[Budget]]
else:
    _Inline, _Form, _FormSet = admin.TabularInline, forms.ModelForm, forms.BaseInlineFormSet


class BudgetForm(_Form):
    """A budget that was used keeps its period: its windows were cut by it."""

    def clean_period(self) -> str:
        period: str = self.cleaned_data["period"]
        budget = self.instance
        if budget.pk and period != budget.period and budget.windows.exists():
            raise ValidationError("Already in use: switch this one off and add another.")
        return period


class BudgetFormSet(_FormSet):
    def clean(self) -> None:
        super().clean()
        here = [form.instance.pk for form in self.forms if form.instance.pk]
        others = Budget.objects.filter(user=self.instance, is_active=True).exclude(pk__in=here)
        active = [
            *others.values_list("period", flat=True),
            *(
                form.cleaned_data["period"]
                for form in self.forms
                if form.is_valid() and form.cleaned_data.get("is_active") and _is_used(form)
            ),
        ]
        if len(active) != len(set(active)):
            raise ValidationError("Only one active budget for each period.")


def _is_used(form: Any) -> bool:
    return bool(form.instance.pk) or form.has_changed()


class BudgetInline(_Inline):
    model = Budget
    form = BudgetForm
    formset = BudgetFormSet
    extra = 0
    can_delete = False
    fields = ("period", "limit_micros", "limit", "is_active", "note", "used")
    readonly_fields = ("limit", "used")

    @admin.display(description="in dollars")
    def limit(self, budget: Budget) -> str:
        return dollars(budget.limit_micros) if budget.pk else "–"

    @admin.display(description="present window")
    def used(self, budget: Budget) -> str:
        return bar(budget, present_window(budget)) if budget.pk else "–"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
