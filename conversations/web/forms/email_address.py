"""A new e-mail address, asked for with the password of the account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables

from conversations.web.forms.log_in import CountedForm
from conversations.web.responses import require_user


class EmailAddressForm(CountedForm):
    email = forms.EmailField(
        label=gettext_lazy("New e-mail address"),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    password = forms.CharField(
        label=gettext_lazy("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, data: Any) -> None:
        super().__init__(data)
        self.request = request

    @sensitive_variables()
    def clean_password(self) -> str:
        user, password = require_user(self.request), self.cleaned_data["password"]
        with self.counted(self.request, name=user.get_username()):
            if not user.check_password(password):
                raise forms.ValidationError(_("This is not your password."))
        return str(password)
