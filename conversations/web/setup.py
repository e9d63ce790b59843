"""First run: a one-time link to create the first administrator.

The token is a file in the data folder, readable by its owner only, and is deleted when it is used.
Once there is an administrator the page is a 404, whatever the token. Wrong tokens are counted like
wrong passwords.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from django.conf import settings
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.debug import sensitive_post_parameters

from conversations.accounts.people import has_administrator
from conversations.accounts.throttle import LogInThrottled, admit_log_in, refund_attempt
from conversations.web.forms.log_in import read_peer
from conversations.web.forms.new_accounts import SetupForm
from conversations.web.log_in import answer_throttled


def _token_path() -> Path:
    return Path(settings.DATA_DIR) / "setup_token"


def read_setup_token() -> str | None:
    """Return the setup link's token, creating it if needed; None if there is an administrator."""
    if has_administrator():
        _token_path().unlink(missing_ok=True)
        return None
    return _read_token() or _write_token()


def _read_token() -> str:
    try:
        return _token_path().read_text(encoding="ascii")
    except FileNotFoundError:
        return ""


def _write_token() -> str:
    """Write a new token to a private file, atomically."""
    token = secrets.token_urlsafe(24)
    handle, name = tempfile.mkstemp(dir=settings.DATA_DIR)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token)
    Path(name).rename(_token_path())
    return token


def _is_used_up() -> bool:
    """Delete the token; of two concurrent posts only one finds it."""
    try:
        _token_path().unlink()
    except FileNotFoundError:
        return True
    return False


@sensitive_post_parameters()
def page(request: HttpRequest, token: str) -> HttpResponse:
    # Never create one here: a concurrent copy of this post could use up the new token.
    known = "" if has_administrator() else _read_token()
    if not known:
        raise Http404("no such page")
    try:
        admit_log_in(peer=read_peer(request))
    except LogInThrottled as error:
        return answer_throttled(request, error.seconds)
    if not constant_time_compare(token, known):
        raise Http404("no such page")
    refund_attempt(peer=read_peer(request))
    form = SetupForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if _is_used_up():
            raise Http404("no such page")
        user = form.save()
        login(request, user)
        return redirect("home")
    return render(request, "setup.html", {"form": form}, status=400 if form.errors else 200)
