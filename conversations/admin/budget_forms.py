"""The forms of budgets and turn caps, on their own pages and on a person's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from conversations.admin.amount_field import AmountField
from conversations.admin.budget_action_forms import OptionalReason
from conversations.admin.concurrent_edits import keep_concurrent_edits
from conversations.budgets.crossings import recording_afterwards
from conversations.budgets.units import show_amount
from conversations.conf import conf
from conversations.models import Budget, TurnCap, User
from conversations.rendering.numbers import dollars

if TYPE_CHECKING:
    _Inline = admin.TabularInline[Budget, User]
    _CapInline = admin.StackedInline[TurnCap, User]
    _Form = forms.ModelForm[Budget]
    _CapForm = forms.ModelForm[TurnCap]
    _FormSet = forms.BaseInlineFormSet[Budget, User, forms.ModelForm[Budget]]
else:
    _Inline, _CapInline, _Form = admin.TabularInline, admin.StackedInline, forms.ModelForm
    _CapForm = forms.ModelForm
    _FormSet = forms.BaseInlineFormSet

M = TypeVar("M", bound=Model)
#: The fields that define a budget's windows.
FIXED = ("scope", "group", "user", "kind", "unit", "period", "model", "time_zone")


class BudgetForm(_Form):
    limit = AmountField(
        label=_("Limit"),
        help_text=_("Money in dollars, such as 2.50; tokens, turns and requests as whole numbers."),
    )
    reason = OptionalReason()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(limit := self.fields.get("limit"), AmountField):
            unit = self["unit"].value() if "unit" in self.fields else self.instance.unit
            is_known = unit in Budget.Unit.values
            limit.unit = unit if is_known else self.instance.unit
        if self.instance._state.adding and "time_zone" in self.fields:
            self.fields["time_zone"].initial = conf.budget_time_zone

    def clean(self) -> dict[str, Any]:
        super().clean()
        budget = self.instance
        if self.cleaned_data.get("kind") == Budget.Kind.OWN:
            self.add_error("kind", _("Only the person sets this, on their usage page."))
        if budget.pk and budget.windows.exists():
            for name in set(self.changed_data) & set(FIXED):
                self.add_error(name, _("Already in use: switch this one off and add another."))
        return self.cleaned_data


class BudgetFormSet(_FormSet):
    def clean(self) -> None:
        super().clean()
        here = [form.instance.pk for form in self.forms if form.instance.pk]
        mine = Budget.objects.filter(user=self.instance, is_active=True)
        others = mine.exclude(kind=Budget.Kind.OWN).exclude(pk__in=here)
        active = [
            *others.values_list("unit", "period", "model"),
            *(
                # Of the row, whose model is written as it is kept.
                (form.instance.unit, form.instance.period, form.instance.model)
                for form in self.forms
                if form.is_valid() and form.instance.is_active and _is_used(form)
            ),
        ]
        if len(active) != len(set(active)):
            raise ValidationError(_("Only one active budget for each unit, period and model."))

    def save_existing_objects(self, commit: bool = True) -> list[Budget]:
        """Save what has changed, all of it switched off first: in whatever order they take each
        other's places, the database never has two active ones alike.
        """
        changed = [form.instance.pk for form in self.initial_forms if form.has_changed()]
        with recording_afterwards(budgets=changed):
            Budget.objects.filter(pk__in=changed).update(is_active=False)
            return super().save_existing_objects(commit)


def _is_used(form: Any) -> bool:
    return bool(form.instance.pk) or form.has_changed()


class BudgetInline(_Inline):
    """A person's own budgets; their status is shown above, with all that apply."""

    model = Budget
    form = keep_concurrent_edits(BudgetForm)
    formset = BudgetFormSet
    verbose_name_plural = _("budgets of this person's own")
    extra = 0
    can_delete = False
    fields = ("unit", "period", "model", "time_zone", "limit", "is_active", "note")
    readonly_fields = ("amount",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        # What the person has set is theirs to change; it is shown above.
        rows = super().get_queryset(request).exclude(kind=Budget.Kind.OWN)
        return lock_for_change(rows, request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        may = self.has_change_permission(request, obj) or self.has_add_permission(request, obj)
        return choose_fields(self.fields, may)

    @admin.display(description=_("limit"))
    def amount(self, budget: Budget) -> str:
        return show_amount(budget.limit, budget.unit)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class TurnCapForm(_CapForm):
    micros = AmountField(
        label=_("Money (USD)"), required=False, help_text=_("In dollars, such as 2.50; 0: no cap.")
    )
    reason = OptionalReason()


class TurnCapInline(_CapInline):
    model = TurnCap
    form = keep_concurrent_edits(TurnCapForm)
    verbose_name_plural = _("caps of a turn, this person's own")
    extra = 1
    max_num = 1
    names = ("micros", "rounds", "tool_calls", "seconds")
    readonly_fields = ("money",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TurnCap]:
        return lock_for_change(super().get_queryset(request), request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        may_add = self.has_add_permission(request, obj) and not hasattr(obj, "turn_cap")
        may = self.has_change_permission(request, obj) or may_add
        return (choose_fields(self.names, may),)

    @admin.display(description=_("money"))
    def money(self, cap: TurnCap) -> str:
        return show_money_cap(cap)


def lock_for_change(rows: QuerySet[M], request: HttpRequest) -> QuerySet[M]:
    """Return rows of a person's page, for a change locked as those of a page of their own are."""
    is_change = request.method == "POST" and connection.in_atomic_block
    return rows.select_for_update(no_key=True) if is_change else rows


def choose_fields(names: tuple[str, ...], may_change: bool) -> tuple[str, ...]:
    """Replace fields of money by text for users who may only view them, who need no reason."""
    if may_change:
        return names
    texts = {"limit": "amount", "micros": "money"}
    return tuple(texts.get(name, name) for name in names if name != "reason")


def show_money_cap(cap: TurnCap) -> str:
    """Return the cap on the money of a turn as text."""
    return str(_("no cap")) if cap.micros == 0 else dollars(cap.micros) or "–"


def describe_limit_change(form: Any) -> list[dict[str, Any]]:
    """Return the log entry for a changed limit: from what to what."""
    if "limit" not in form.changed_data:
        return []
    before, budget = form.initial["limit"], form.instance
    step = f"{show_amount(before, budget.unit)} → {show_amount(budget.limit, budget.unit)}"
    return [{"changed": {"name": "limit a", "object": budget.period, "fields": [step]}}]
