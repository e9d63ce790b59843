"""Forms that ask for a password; each of them counts its attempts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_variables

from conversations.accounts.account_events import Kind
from conversations.accounts.account_mail import can_send_mail
from conversations.accounts.known_devices import cookie_name, find_device
from conversations.accounts.people import save_password
from conversations.accounts.second_factors import has_factor, use_code
from conversations.accounts.throttle import LogInThrottled, admit_log_in, refund_attempt
from conversations.models import User
from conversations.web.responses import require_user


def read_peer(request: HttpRequest) -> str:
    """Return the address of the client, as the server reports the connection."""
    return str(request.META.get("REMOTE_ADDR") or "")


def read_device(request: HttpRequest, name: str) -> str:
    """Return the id of the browser if the person of the name logged in with it before."""
    return find_device(request.COOKIES.get(cookie_name(), ""), name)


def describe_wait(seconds: int) -> str:
    """Return how long log-ins are refused, for people."""
    words = (
        _(
            "Too many failed log-ins. Wait %(wait)s, then try again. If it is urgent, or you have"
            " forgotten your password, set a new one with a link by e-mail."
        )
        if can_send_mail()
        else _(
            "Too many failed log-ins. Wait %(wait)s, then try again. If you have forgotten your"
            " password, ask an administrator."
        )
    )
    return words % {"wait": _name_wait(seconds)}


def describe_link_wait(seconds: int) -> str:
    """Return how long links to chats that do not work are refused, for people."""
    words = _(
        "Many links that do not work were opened from your network. A link that works opens all"
        " the same; wait %(wait)s before you try this one again."
    )
    return words % {"wait": _name_wait(seconds)}


def _name_wait(seconds: int) -> str:
    minutes = -(-seconds // 60)
    if seconds < 90:
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}


class CountedForm(forms.Form):
    """A form whose attempts are counted."""

    #: Seconds until another attempt is accepted.
    wait = 0

    @contextmanager
    def counted(self, request: HttpRequest, *, name: str) -> Iterator[None]:
        """Count an attempt; it is not counted when the block ends without an error."""
        peer, device = read_peer(request), read_device(request, name)
        try:
            admit_log_in(peer=peer, name=name, device=device)
        except LogInThrottled as error:
            self.wait = error.seconds
            raise forms.ValidationError(describe_wait(error.seconds), code=error.code) from error
        yield
        refund_attempt(peer=peer, name=name, device=device)


class OwnSecretForm(CountedForm):
    """Asks a person who is logged in for their password, or a code, once more, if they have any."""

    secret = forms.CharField(
        label=gettext_lazy("Your password, or a code"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, data: Any) -> None:
        super().__init__(data)
        self.request = request
        user = require_user(request)
        if not (user.has_usable_password() or has_factor(user)):
            # They log in by a provider, which cannot be asked again here.
            del self.fields["secret"]

    @sensitive_variables()
    def clean_secret(self) -> str:
        user, secret = require_user(self.request), str(self.cleaned_data["secret"])
        with self.counted(self.request, name=user.get_username()):
            if not (user.check_password(secret) or use_code(user_id=user.pk, code=secret.strip())):
                raise forms.ValidationError(_("This is neither your password nor a code."))
        return secret


class LogInForm(CountedForm, AuthenticationForm):
    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        name, password = (self.cleaned_data.get(field) for field in ("username", "password"))
        if not name or not password:
            return super().clean() or {}
        assert self.request is not None  # noqa: S101
        with self.counted(self.request, name=name):
            return super().clean() or {}


class NewPasswordForm(CountedForm, PasswordChangeForm):
    """A new password; attempts at the old one count like attempts to log in."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        # It stands below the fold of a phone: the page would begin in its middle.
        del self.fields["old_password"].widget.attrs["autofocus"]

    @sensitive_variables()
    def clean_old_password(self) -> str:
        with self.counted(self.request, name=self.user.get_username()):
            return super().clean_old_password()

    def save(self, commit: bool = True) -> User:
        user = super().save(commit=False)
        save_password(user=user, kind=Kind.PASSWORD_CHANGED, peer=read_peer(self.request))
        return user
