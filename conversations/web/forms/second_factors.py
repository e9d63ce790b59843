"""The code after a password, counted like a log-in and taken once."""

from __future__ import annotations

from typing import Any

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from django.utils.translation import gettext_lazy

from conversations.accounts.second_factors import use_code
from conversations.web.forms.log_in import CountedForm


class CodeForm(CountedForm, AuthenticateForm):
    """A code of the app, or a recovery code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = gettext_lazy(
            "Code of your authenticator app, or a recovery code"
        )
        self.fields["code"].widget.attrs.pop("placeholder", None)

    def clean_code(self) -> str:
        code = str(self.cleaned_data["code"])
        with self.counted(context.request, name=self.user.get_username()):
            self.authenticator = use_code(user_id=self.user.pk, code=code)
            if self.authenticator is None:
                raise get_adapter().validation_error("incorrect_code")
        return code
