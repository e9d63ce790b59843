"""The forms of budget actions: an amount in the budget's unit, and a reason."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from conversations.budgets.amounts import Unreadable
from conversations.budgets.units import UNITS, parse_amount
from conversations.models import Budget, User
from conversations.models.budgets import MOST
from conversations.models.periods import load_zone

#: The latest day that a grant may last to.
_LAST_YEAR = 9000


class OptionalReason(forms.CharField):
    """Why money was changed; the admin site puts what is posted into the record of it."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Reason"),
            max_length=200,
            required=False,
            help_text=_("May stay empty. It stays on record with your name."),
        )


class ReasonForm(forms.Form):
    """The fields of every action: a reason, and a key so that it is performed only once."""

    form = forms.UUIDField(widget=forms.HiddenInput)
    reason = forms.CharField(
        label=_("Reason"), max_length=200, widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("It stays on record with your name."),
    )  # fmt: skip


class AmountForm(ReasonForm):
    """An amount in the unit of a budget."""

    amount = forms.CharField(label=_("Amount"), max_length=40)
    field_order: tuple[str, ...] = ("form", "amount")

    def __init__(self, *args: Any, unit: str, sign: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.unit = unit
        self.fields["amount"].help_text = _(sign or "In %(unit)s.") % {"unit": UNITS[unit].measure}

    def clean_amount(self) -> int:
        try:
            return parse_amount(self.cleaned_data["amount"], self.unit)
        except Unreadable as error:
            raise forms.ValidationError(f"{capfirst(str(error))}.") from error


class GrantForm(AmountForm):
    user = forms.CharField(
        label=_("For"), max_length=150, required=False,
        help_text=_("A username; empty: everybody the budget is for."),
    )  # fmt: skip
    until = forms.DateField(
        label=_("Until the end of"), required=False,
        widget=forms.DateInput(attrs={"type": "date"}), help_text=_("Empty: it does not end."),
    )  # fmt: skip
    field_order = ("form", "user", "amount", "until")

    def __init__(self, *args: Any, budget: Budget, **kwargs: Any) -> None:
        super().__init__(*args, unit=budget.unit, **kwargs)
        self.zone = load_zone(budget.time_zone)
        self.fields["until"].help_text = _("Empty: it does not end. Days of %(zone)s.") % {
            "zone": budget.time_zone
        }
        if budget.kind == Budget.Kind.POOL or budget.user_id is not None:
            del self.fields["user"]

    def clean_amount(self) -> int:
        found = super().clean_amount()
        if not 0 < found <= MOST:
            raise forms.ValidationError(
                _("A grant is more than nothing, and no more than a budget can hold.")
            )
        return found

    def clean_user(self) -> User | None:
        name = self.cleaned_data["user"]
        user = User.objects.filter(username=name).first() if name else None
        if name and user is None:
            raise forms.ValidationError(_("There is no user %(name)s.") % {"name": name})
        return user

    def clean_until(self) -> datetime | None:
        day = self.cleaned_data["until"]
        return None if day is None else read_last_day(day, self.zone)


def read_last_day(day: date, zone: ZoneInfo) -> datetime:
    """Return the end of the last day of a grant; ValidationError where that is past."""
    if day.year > _LAST_YEAR:
        raise forms.ValidationError(_("No later than the year %(year)s.") % {"year": _LAST_YEAR})
    ends = datetime.combine(day + timedelta(days=1), time(), zone)
    if ends <= timezone.now():
        raise forms.ValidationError(_("A grant ends later than now."))
    return ends


class CorrectionForm(AmountForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args, sign=gettext_noop("In %(unit)s; with a minus it gives back."), **kwargs
        )
        self.fields["amount"].label = _("Add to what is spent")
