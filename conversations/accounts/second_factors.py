"""Second factors: authenticator apps, passkeys and recovery codes, and who must have one.

django-allauth keeps and checks them. A passkey is a way in by itself; everybody else with a factor
is asked for it after the password or the provider. A rule for a group binds its members from their
next log-in: without a factor they reach only the page to add one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.mfa import app_settings
from allauth.mfa.models import Authenticator
from django.contrib.sessions.backends.base import SessionBase

from conversations.accounts.account_events import log_change, record_event
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.models import AccountEvent, SecondFactorRule, User

Type = Authenticator.Type
#: In the session of somebody who had to add a second factor when they logged in.
LACKS_FACTOR = "lacks_factor"
_REMOVED = mark_recorded(gettext_noop("Removed the lost second factors"))


@dataclass(frozen=True, slots=True)
class Passkey:
    id: int
    name: str
    created_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SecondFactors:
    """What one person has."""

    has_app: bool
    passkeys: tuple[Passkey, ...]
    #: Unused recovery codes.
    codes: int
    is_required: bool

    @property
    def has_any(self) -> bool:
        return self.has_app or bool(self.passkeys)


def list_second_factors(user: User) -> SecondFactors:
    rows: list[Any] = list(Authenticator.objects.filter(user=user).order_by("pk"))
    codes = [row for row in rows if row.type == Type.RECOVERY_CODES]
    keys = [row for row in rows if row.type == Type.WEBAUTHN]
    return SecondFactors(
        has_app=any(row.type == Type.TOTP for row in rows),
        passkeys=tuple(
            Passkey(row.pk, str(row.data["name"]), row.created_at, row.last_used_at) for row in keys
        ),
        codes=sum(len(row.wrap().get_unused_codes()) for row in codes),
        is_required=must_have_factor(user),
    )


def must_have_factor(user: User) -> bool:
    return SecondFactorRule.objects.filter(group__user=user).exists()


def lacks_factor(user: User) -> bool:
    """Return whether the person must have a factor and has none."""
    return must_have_factor(user) and not has_factor(user)


def must_add_factor(session: SessionBase, user: User) -> bool:
    """Return whether the session began without a factor that its person must have and lacks still.

    The factor may have been added, or the rule taken away, in another browser.
    """
    return LACKS_FACTOR in session and lacks_factor(user)


def has_factor(user: User) -> bool:
    kinds = (Type.TOTP, Type.WEBAUTHN)
    return bool(Authenticator.objects.filter(user=user, type__in=kinds).exists())


@transact
def use_code(*, user_id: int, code: str) -> Authenticator | None:
    """Return the factor whose code this is, and never again for the same code; None: of none.

    django-allauth remembers used codes of an app in the memory of a process, and for less time than
    it takes them; here they are kept in the row, which is locked.
    """
    kinds = (Type.TOTP, Type.RECOVERY_CODES)
    found = Authenticator.objects.select_for_update().filter(user=user_id, type__in=kinds)
    row: Authenticator
    for row in found.order_by("-type"):
        if row.wrap().validate_code(code) and (row.type != Type.TOTP or _take_once(row, code)):
            return row
    return None


def _take_once(row: Any, code: str) -> bool:
    span = (2 * app_settings.TOTP_TOLERANCE + 1) * app_settings.TOTP_PERIOD
    # Whatever stands between the digits: a code may be written with it.
    digits, now = "".join(filter(str.isdigit, code)), time.time()
    used = [each for each in row.data.get("used", []) if each[1] > now - span]
    if digits in [each[0] for each in used]:
        return False
    row.data["used"] = [*used, [digits, now]]
    row.save(update_fields=["data"])
    return True


def may_remove_factor(user: User, factor_id: int) -> bool:
    """Return whether another factor is left for somebody who must have one."""
    others = Authenticator.objects.filter(user=user, type__in=(Type.TOTP, Type.WEBAUTHN))
    return not must_have_factor(user) or others.exclude(pk=factor_id).exists()


@transact
def remove_lost_factors(*, user: User, actor: User | None = None, peer: str = "") -> int:
    """Remove all factors of a person, on record; return how many there were.

    The person is told. `actor` None: whoever has a shell on the server.
    """
    count = int(Authenticator.objects.filter(user=user).delete()[0])
    if count:
        record_event(user=user, kind=AccountEvent.Kind.FACTOR_REMOVED, peer=peer)
    if count and actor is not None:
        log_change(user=user, actor=actor, words=_REMOVED)
    return count
