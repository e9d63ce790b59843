"""Forms that ask for a password; each of them counts its attempts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_variables

from conversations.accounts.throttle import LogInThrottled, admit_log_in, forgive_log_in


def read_peer(request: HttpRequest) -> str:
    """Return the address of the client, as the server reports the connection."""
    return str(request.META.get("REMOTE_ADDR") or "")


def describe_wait(seconds: int) -> str:
    """Return how long log-ins are refused, for people."""
    minutes = -(-seconds // 60)
    wait = (
        ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
        if seconds < 90
        else ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}
    )
    return _(
        "Too many failed log-ins. Wait %(wait)s, then try again. If you have forgotten your"
        " password, an administrator can give you a new one."
    ) % {"wait": wait}


class CountedForm(forms.Form):
    """A form whose attempts are counted."""

    #: Seconds until another attempt is accepted.
    wait = 0

    @contextmanager
    def counted(self, *, peer: str, name: str) -> Iterator[None]:
        """Count an attempt; it is not counted when the block ends without an error."""
        try:
            admit_log_in(peer=peer, name=name)
        except LogInThrottled as error:
            self.wait = error.seconds
            raise forms.ValidationError(describe_wait(error.seconds), code=error.code) from error
        yield
        forgive_log_in(peer=peer, name=name)


class LogInForm(CountedForm, AuthenticationForm):
    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        name, password = (self.cleaned_data.get(field) for field in ("username", "password"))
        if not name or not password:
            return super().clean() or {}
        assert self.request is not None  # noqa: S101
        with self.counted(peer=read_peer(self.request), name=name):
            return super().clean() or {}


class StaffLogInForm(LogInForm, AdminAuthenticationForm):
    """The admin's form: people who are not staff get the same error as for a wrong password."""


class NewPasswordForm(CountedForm, PasswordChangeForm):
    """A new password; attempts at the old one count like attempts to log in."""

    def __init__(self, *args: Any, peer: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.peer = peer

    @sensitive_variables()
    def clean_old_password(self) -> str:
        with self.counted(peer=self.peer, name=self.user.get_username()):
            return super().clean_old_password()
