"""The forms of new accounts: of the first administrator, and of somebody who was invited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib.auth.forms import UserCreationForm

from conversations.models import User

if TYPE_CHECKING:
    _UserForm = UserCreationForm[User]
else:
    _UserForm = UserCreationForm


class NewPersonForm(_UserForm):
    """The name and password of somebody who was invited."""

    class Meta:
        model = User
        fields = ("username",)
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "username"})}


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
