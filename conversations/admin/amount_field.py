"""A form field for amounts as people write them: dollars of money, whole numbers otherwise.

The stored value is an integer; of money, micro-dollars. Grants and CSV use the same notation.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from conversations.budgets.amounts import Unreadable
from conversations.budgets.units import MONEY, format_amount, parse_amount, show_amount
from conversations.models.budgets import MOST


class AmountField(forms.CharField):
    """Takes and shows an amount in `unit`; the value is an integer, or None when empty."""

    def __init__(self, *, unit: str = MONEY.name, most: int = MOST, **kwargs: Any) -> None:
        self.unit, self.most = unit, most
        widget = forms.TextInput(attrs={"inputmode": "decimal", "size": 14})
        super().__init__(max_length=40, empty_value=None, widget=widget, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return format_amount(value, self.unit) if isinstance(value, int) else value

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if text is None or isinstance(value, int):
            return value if isinstance(value, int) else None
        try:
            found = parse_amount(text, self.unit)
        except Unreadable as error:
            raise forms.ValidationError(f"{error}.") from error
        if not 0 <= found <= self.most:
            least, most = show_amount(0, self.unit), show_amount(self.most, self.unit)
            raise forms.ValidationError(
                _("It is from %(least)s to %(most)s.") % {"least": least, "most": most}
            )
        return found

    def run_validators(self, value: Any) -> None:
        """Skip the validators of text: the value is an amount."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare amounts, so that 60 and 60.00 are equal."""
        try:
            return bool(self.to_python(data) != initial)
        except forms.ValidationError:
            return True
