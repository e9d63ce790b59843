"""The field of instructions, for one chat or for all chats of a person."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from conversations.rendering.numbers import write_number


class InstructionsField(forms.CharField):
    """A text of up to `most` characters, with its lines ended as they are stored."""

    most = 0

    def __init__(self, *, label: Any, help_text: Any, most: int = 0) -> None:
        super().__init__(
            label=label,
            required=False,
            strip=False,
            widget=forms.Textarea(attrs={"rows": 5, "dir": "auto"}),
            help_text=help_text,
        )
        self.most = most

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")

    def validate(self, value: str) -> None:
        super().validate(value)
        if len(value) > self.most:
            raise forms.ValidationError(
                _("At most %(most)s characters fit; these are %(count)s.")
                % {"most": write_number(self.most), "count": write_number(len(value))}
            )
