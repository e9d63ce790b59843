"""The forms of mail accounts. They accept a secret and never show it."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from conversations.toolbox.mail_accounts import list_mail_providers
from tools.framework.errors import ToolError
from tools.mail.accounts import Account, Server
from tools.mail.compose import check_addresses

HOST = re.compile(r"[a-z0-9:._-]{1,253}")
NAME = re.compile(r"[\w .@+-]{1,60}")
SECURITY = [("tls", _("TLS")), ("starttls", _("STARTTLS"))]
AUTH = [("password", _("App password")), ("token", _("OAuth access token"))]


def _secret(label: Any, **more: Any) -> forms.CharField:
    field = forms.PasswordInput(attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, widget=field, strip=True, max_length=8_000, **more)


class _Named(forms.Form):
    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not NAME.fullmatch(name):
            raise forms.ValidationError(_("Use letters, digits, spaces and . @ + - _ only."))
        return name

    def clean_folder(self) -> str:
        return self.cleaned_data.get("folder") or "INBOX"


class MailAccountForm(_Named):
    name = forms.CharField(
        label=_("Name"), max_length=60, help_text=_("How you call it to the agent: work, private.")
    )
    address = forms.EmailField(label=_("Mail address"), max_length=254)
    login = forms.CharField(
        label=_("User name"), required=False, max_length=254,
        help_text=_("Where it is not the address."),
    )  # fmt: skip
    auth = forms.ChoiceField(
        label=_("Log in with"), choices=AUTH, initial="password", widget=forms.RadioSelect
    )
    secret = _secret(
        _("App password or token"),
        help_text=_(
            "An app password is made in the settings of your mail provider, for this purpose alone."
            " It is stored encrypted and never shown again."
        ),
    )
    imap_host = forms.CharField(label=_("Server for reading (IMAP)"), max_length=253)
    imap_port = forms.IntegerField(label=_("Port"), initial=993, min_value=1, max_value=65_535)
    imap_security = forms.ChoiceField(label=_("Encryption"), choices=SECURITY, initial="tls")
    smtp_host = forms.CharField(
        label=_("Server for sending (SMTP)"), max_length=253, required=False,
        help_text=_("Empty: this account only reads and drafts."),
    )  # fmt: skip
    smtp_port = forms.IntegerField(
        label=_("Port"), initial=465, min_value=1, max_value=65_535, required=False
    )
    smtp_security = forms.ChoiceField(label=_("Encryption"), choices=SECURITY, initial="tls")
    folder = forms.CharField(
        label=_("Usual folder"), max_length=250, initial="INBOX", required=False
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        offered = [
            (f"refresh {name}", _("%(provider)s: OAuth refresh token") % {"provider": name})
            for name in list_mail_providers()
        ]
        self.fields["auth"].choices = [*AUTH, *offered]  # type: ignore[attr-defined]

    def clean_address(self) -> str:
        try:
            (address,) = check_addresses([self.cleaned_data["address"]])
        except ToolError as error:
            raise forms.ValidationError(str(error)) from error
        return address

    def clean_imap_host(self) -> str:
        return _host(self.cleaned_data["imap_host"])

    def clean_smtp_host(self) -> str:
        return _host(self.cleaned_data.get("smtp_host") or "", is_needed=False)

    def account(self) -> Account:
        """Return the input as an account."""
        data = self.cleaned_data
        auth, _space, provider = data["auth"].partition(" ")
        smtp = Server(data["smtp_host"], data.get("smtp_port") or 465, data["smtp_security"])
        return Account(
            name=data["name"],
            address=data["address"],
            login=data["login"] or data["address"],
            imap=Server(data["imap_host"], data["imap_port"], data["imap_security"]),
            smtp=smtp if smtp.host else None,
            auth=auth,
            provider=list_mail_providers().get(provider),
            folder=data["folder"],
            secret=data["secret"],
        )


class ChangeMailForm(_Named):
    name = forms.CharField(label=_("Name"), max_length=60)
    folder = forms.CharField(label=_("Usual folder"), max_length=250, required=False)
    secret = _secret(
        _("New app password or token"), required=False, help_text=_("Empty: it stays as it is.")
    )


def _host(text: str, *, is_needed: bool = True) -> str:
    host = text.strip().lower().rstrip(".")
    if (host or is_needed) and not HOST.fullmatch(host):
        raise forms.ValidationError(_("Write the name of the server, such as imap.example.org."))
    return host
