"""Known devices: browsers in which a person logged in before, told by a signed cookie.

Guesses of strangers are counted for the whole account; attempts from a known device are counted for
that device alone, so the person gets in while strangers are held up. The cookie opens nothing.
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core import signing

from conversations.models import User

COOKIE = "known-device"
_SALT, KEPT_FOR_DAYS = "agentweb.known_device", 365
#: Accounts remembered in one browser.
_MOST_ACCOUNTS = 8


def find_device(cookie: str, name: str) -> str:
    """Return the id of this browser if the person of the name logged in here before, else ""."""
    user = User.objects.filter(username=name).only("pk").first()
    return _read(cookie).get(str(user.pk), "") if user else ""


def remember_device(cookie: str, user: User) -> str:
    """Return the cookie that remembers the person in this browser as well."""
    known = _read(cookie)
    known[str(user.pk)] = known.pop(str(user.pk), "") or f"device {secrets.token_hex(8)}"
    newest = dict(list(known.items())[-_MOST_ACCOUNTS:])
    return signing.dumps(newest, salt=_SALT)


def cookie_name() -> str:
    """Return the name; with HTTPS a neighbouring host cannot set it."""
    return f"__Host-{COOKIE}" if settings.HTTPS else COOKIE


def _read(cookie: str) -> dict[str, str]:
    try:
        found = signing.loads(cookie, salt=_SALT, max_age=KEPT_FOR_DAYS * 86_400)
    except signing.BadSignature:
        return {}
    return dict(found)
