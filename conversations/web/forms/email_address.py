"""A new e-mail address, asked for with the password of the account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from conversations.accounts.account_events import Kind, admit_link
from conversations.web.forms.log_in import OwnSecretForm, read_peer
from conversations.web.responses import require_user


class EmailAddressForm(OwnSecretForm):
    email = forms.EmailField(
        label=gettext_lazy("New e-mail address"),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    field_order = ("email", "secret")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        user, peer = require_user(self.request), read_peer(self.request)
        if not self.errors and not admit_link(user=user, kind=Kind.EMAIL_ASKED, peer=peer):
            self.wait = 3_600
            raise forms.ValidationError(
                _("You asked for many links. Wait an hour, then try again."), code="too_many_links"
            )
        return data
