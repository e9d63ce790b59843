"""Codes of second factors and the confirmation of who one is, counted like log-ins."""

from __future__ import annotations

from typing import Any

from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables

from conversations.web.forms.log_in import CountedForm
from conversations.web.responses import require_user


class CodeForm(CountedForm, AuthenticateForm):
    """A code of the app, or a recovery code, after the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = gettext_lazy(
            "Code of your authenticator app, or a recovery code"
        )
        self.fields["code"].widget.attrs.pop("placeholder", None)

    def clean_code(self) -> str:
        with self.counted(context.request, name=self.user.get_username()):
            return str(super().clean_code())


class IdentityForm(CountedForm):
    """The password or a code once more, before something of the account's safety is changed."""

    secret = forms.CharField(
        label=gettext_lazy("Your password, or a code"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, data: Any) -> None:
        super().__init__(data)
        self.request = request

    @sensitive_variables()
    def clean_secret(self) -> str:
        user, secret = require_user(self.request), self.cleaned_data["secret"]
        with self.counted(self.request, name=user.get_username()):
            if not (user.check_password(secret) or _is_code(user.pk, secret.strip())):
                raise forms.ValidationError(_("This is neither your password nor a code."))
        return str(secret)


def _is_code(user_id: int, code: str) -> bool:
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
    rows: Any = Authenticator.objects.filter(user=user_id, type__in=kinds)
    return any(row.wrap().validate_code(code) for row in rows)
