"""The reason for reading another person's conversation."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy

from conversations.accounts.reading_reasons import LEAST_CHARS, MOST_CHARS


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        min_length=LEAST_CHARS,
        max_length=MOST_CHARS,
        help_text=gettext_lazy("It stands in the record beside each part that you read."),
    )
