"""How django-allauth acts here: no sign-up of its own, no messages and mails of its own."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from conversations.web.forms.log_in import read_peer
from conversations.web.openid_log_in import refuse_log_in


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, *_args: Any, **_kwargs: Any) -> None:
        """Show nothing: our pages say what happened."""

    def send_mail(self, *_args: Any, **_kwargs: Any) -> None:
        """Send nothing: events of accounts are told by `accounts/account_events.py`."""

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        return refuse_log_in(request, "closed")

    def login(self, request: HttpRequest, user: Any) -> None:
        """Let in who is active still: the account may have been closed since the password."""
        if not user.is_active:
            raise ImmediateHttpResponse(self.respond_user_inactive(request, user))
        super().login(request, user)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Name our one page, which takes a password or a code."""
        url = reverse("account_reauthenticate")
        return [{"id": "reauthenticate", "url": url}] if user.is_authenticated else []

    def get_client_ip(self, request: HttpRequest) -> str:
        return read_peer(request)
