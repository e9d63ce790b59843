"""How django-allauth acts here: no sign-up of its own, no messages and mails of its own."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.urls import reverse

from conversations.web.forms.log_in import read_peer


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, *_args: Any, **_kwargs: Any) -> None:
        """Show nothing: our pages say what happened."""

    def send_mail(self, *_args: Any, **_kwargs: Any) -> None:
        """Send nothing: events of accounts are told by `accounts/account_events.py`."""

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Name our one page, which takes a password or a code."""
        url = reverse("account_reauthenticate")
        return [{"id": "reauthenticate", "url": url}] if user.is_authenticated else []

    def get_client_ip(self, request: HttpRequest) -> str:
        return read_peer(request)
