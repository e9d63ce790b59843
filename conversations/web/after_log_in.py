"""Runs after every log-in: sets the session's expiry, remembers the device, tells of guesses.

Called by Django's signal, so it is the same after a password, a reset link, a provider or a
passkey. A session that still lacks a second factor is held on the pages where one is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from conversations.accounts.account_events import take_unseen_guessing
from conversations.accounts.devices import describe_device, shorten_address
from conversations.accounts.known_devices import KEPT_FOR_DAYS, cookie_name, remember_device
from conversations.accounts.second_factors import LACKS_FACTOR, lacks_factor, must_add_factor
from conversations.accounts.session_ends import begin_session
from conversations.accounts.throttle import forgive_log_in
from conversations.web.forms.log_in import read_device, read_peer

if TYPE_CHECKING:
    from conversations.models import User


#: Where such a session may go; the dialog of an open page says what it lacks.
_OPEN = (
    "/settings/security/", "/accounts/logout/", "/accounts/again/", "/static/", "/healthz/",
    "/favicon.ico",
)  # fmt: skip


@receiver(user_logged_in, dispatch_uid="agentweb.log_in")
def complete_log_in(sender: Any, request: HttpRequest, user: User, **_kwargs: Any) -> None:
    peer, name = read_peer(request), user.get_username()
    device = describe_device(request.headers.get("User-Agent", ""))
    begin_session(request.session, device=device, network=shorten_address(peer))
    forgive_log_in(peer=peer, name=name, device=read_device(request, name))
    request.logged_in = user  # type: ignore[attr-defined]
    if lacks_factor(user):
        request.session[LACKS_FACTOR] = True
    guessed_at = take_unseen_guessing(user.pk)
    if guessed_at is not None:
        text = _(
            "Somebody tried many passwords for your account, last on %(time)s; further attempts"
            " were refused. If it was not you, set a new password and add a second factor."
        ) % {"time": date_format(localtime(guessed_at), "DATETIME_FORMAT")}
        messages.warning(request, text, fail_silently=True)


def is_held_back(request: HttpRequest, path: str) -> bool:
    """Return whether the session must add a second factor before it may go to this path."""
    session, user = request.session, request.user
    if not session.session_key or LACKS_FACTOR not in session or not user.is_authenticated:
        return False
    if not must_add_factor(session, user):
        del session[LACKS_FACTOR]
        return False
    return not path.startswith(_OPEN)


def keep_device(request: HttpRequest, response: HttpResponseBase) -> None:
    """Remember the browser of somebody who has just logged in."""
    user = getattr(request, "logged_in", None)
    if user is None:
        return
    name = cookie_name()
    response.set_cookie(
        name,
        remember_device(request.COOKIES.get(name, ""), user),
        max_age=KEPT_FOR_DAYS * 86_400,
        httponly=True,
        samesite="Lax",
        secure=name.startswith("__Host-"),
    )
