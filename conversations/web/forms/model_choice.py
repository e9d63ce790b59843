"""The choice of a model and a level of effort; an omitted field stays unchanged."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from conversations.library.access import list_usable_models
from conversations.models.log import Effort


class ModelChoiceForm(forms.Form):
    """The model that answers, and how much it thinks; an empty level is the default."""

    model = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": _("This model is not available. Choose another one.")},
    )
    effort = forms.ChoiceField(required=False, choices=[("", ""), *Effort.choices])

    def __init__(self, owner_id: int, data: Any) -> None:
        super().__init__(data)
        choices = [(name, name) for name in list_usable_models(owner_id)]
        self.fields["model"].choices = [("", ""), *choices]  # type: ignore[attr-defined]

    @property
    def chosen(self) -> dict[str, Any]:
        """The keyword arguments of `change_model`."""
        effort = self.cleaned_data["effort"] if "effort" in self.data else None
        return {"model": self.cleaned_data["model"], "effort": effort}
