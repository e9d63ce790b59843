"""Budgets: limits of the site, of groups and of people, what is granted on top, caps of a turn.

A budget that was used keeps what its windows were cut by. A grant is written once, by a staff
member with a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from conversations.admin.base import ModelAdmin
from conversations.conf import conf
from conversations.models import Budget, Grant, TurnCap, User
from conversations.queries.windows import bar, present_window
from conversations.templatetags.agentweb import worth

if TYPE_CHECKING:
    _Inline = admin.TabularInline[Budget, User]
    _Form = forms.ModelForm[Budget]
    _FormSet = forms.BaseInlineFormSet[Budget, User, forms.ModelForm[Budget]]
else:
    _Inline, _Form, _FormSet = admin.TabularInline, forms.ModelForm, forms.BaseInlineFormSet

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
    model = Budget
    form = BudgetForm
    formset = BudgetFormSet
    extra = 0
    can_delete = False
    fields = ("unit", "period", "time_zone", "limit", "in_words", "is_active", "note", "used")
    readonly_fields = ("in_words", "used")

    @admin.display(description="in words")
    def in_words(self, budget: Budget) -> str:
        return worth(budget.limit, budget.unit) if budget.pk else "–"

    @admin.display(description="present window")
    def used(self, budget: Budget) -> str:
        return bar(budget, present_window(budget)) if budget.pk else "–"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Budget)
class BudgetAdmin(ModelAdmin):
    actions = None
    form = BudgetForm
    list_display = (
        "__str__", "scope", "group", "user", "kind", "unit", "period", "time_zone", "is_active"
    )  # fmt: skip
    list_filter = ("is_active", "scope", "kind", "unit", "period")
    list_select_related = ("group", "user")
    search_fields = ("user__username", "group__name", "note")
    autocomplete_fields = ("group", "user")
    ordering = ("scope", "pk")
    fields = (*FIXED, "limit", "soft_percents", "is_active", "note")
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Grant)
class GrantAdmin(ModelAdmin):
    actions = None
    list_display = ("created_at", "budget", "user", "amount", "starts_at", "expires_at", "reason")
    list_filter = ("starts_at", "expires_at")
    list_select_related = ("budget", "user")
    search_fields = ("user__username", "budget__user__username", "budget__group__name", "reason")
    autocomplete_fields = ("budget", "user")
    ordering = ("-pk",)
    fields = ("budget", "user", "amount", "starts_at", "expires_at", "reason")
    show_full_result_count = False

    def save_model(self, request: HttpRequest, obj: Grant, form: Any, change: bool) -> None:
        assert isinstance(request.user, User)  # noqa: S101 - it is the admin
        obj.actor = request.user
        super().save_model(request, obj, form, change)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(TurnCap)
class TurnCapAdmin(ModelAdmin):
    actions = None
    list_display = ("group", "user", "micros", "rounds", "tool_calls", "seconds")
    list_display_links = ("group", "user")
    list_select_related = ("group", "user")
    search_fields = ("user__username", "group__name")
    autocomplete_fields = ("group", "user")
    show_full_result_count = False
