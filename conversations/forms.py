"""Forms: what comes in from a page, checked before anything is stored."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.utils.translation import gettext_lazy as _

from conversations.models import User
from conversations.queries.conversations import enabled_models

if TYPE_CHECKING:
    _UserForm = UserCreationForm[User]
else:
    _UserForm = UserCreationForm


class PromptForm(forms.Form):
    """A message; a missing client id gets one, which makes that send unrepeatable."""

    text = forms.CharField(strip=False, error_messages={"required": _("Write a message first.")})
    client_id = forms.UUIDField(required=False)

    def clean_client_id(self) -> uuid.UUID:
        return self.cleaned_data["client_id"] or uuid.uuid4()


class StartForm(PromptForm):
    """The first message, with the model of the conversation."""

    model = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(name, name) for name in enabled_models()]
        self.fields["model"].choices = [("", ""), *choices]  # type: ignore[attr-defined]


class SetupForm(_UserForm):
    """The first administrator."""

    class Meta:
        model = User
        fields = ("username", "email")
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "username"})}

    def save(self, commit: bool = True) -> User:
        user = super().save(commit=False)
        user.is_staff = user.is_superuser = True
        if commit:
            user.save()
        return user
