"""Tokens of the API: each reads what its scopes name, and never more than its owner may see now.

A token is shown once, when it is made. It has 256 random bits, so the database keeps an unkeyed
digest, which nobody turns back, and wrong tokens are not counted: no number of guesses finds one.
The rights of the owner are read at each request, so a token ends with them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum
from math import ceil

from django.db.models import Case, F, Q, Value, When
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.accounts.account_events import Kind, record_event
from conversations.db import transact
from conversations.models import ApiToken, User

#: What a token may read, and the permissions that its owner needs for it.
SCOPES: dict[str, tuple[str, ...]] = {
    "spending": (
        "conversations.view_budget", "conversations.view_budgetwindow", "conversations.view_user",
    ),
    "usage": ("conversations.view_apicall", "conversations.view_user"),
    "ledger": ("conversations.view_ledgerentry",),
    "reductions": ("conversations.view_transformation",),
}  # fmt: skip
#: Marks a token, so that whoever finds one in a file knows what it is.
PREFIX = "agentweb_"
#: Days that a token works: at most, and where nobody says otherwise.
MOST_DAYS, USUAL_DAYS = 366, 90
#: Requests of one token in a minute.
MOST_A_MINUTE = 120


class TokenState(Enum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class TokenThrottled(Exception):
    code = "api_throttled"

    def __init__(self, seconds: int) -> None:
        super().__init__(f"requests are refused for {seconds} s")
        self.seconds = seconds


def list_own_scopes(user: User) -> list[str]:
    """Return the scopes that a person may give to a token: none for one who is not staff."""
    if not user.is_staff:
        return []
    return [name for name, needed in SCOPES.items() if user.has_perms(needed)]


@transact
def make_token(
    *, owner: User, name: str, scopes: Collection[str], days: int, peer: str
) -> tuple[ApiToken, str]:
    """Make a token; return it and its secret, which cannot be shown again."""
    assert set(scopes) <= set(list_own_scopes(owner))  # noqa: S101 - the form offers no others
    secret = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        owner=owner,
        name=name,
        digest=digest_secret(secret),
        scopes=",".join(scopes),
        expires_at=timezone.now() + timedelta(days=days),
    )
    record_event(user=owner, kind=Kind.TOKEN_MADE, peer=peer)
    return row, secret


@transact
def revoke_token(*, token: ApiToken, peer: str) -> bool:
    """Revoke a token; False where it was revoked before."""
    rows = ApiToken.objects.filter(pk=token.pk, revoked_at=None)
    if not rows.update(revoked_at=timezone.now()):
        return False
    record_event(user=token.owner, kind=Kind.TOKEN_REVOKED, peer=peer)
    return True


def find_token(secret: str, now: datetime) -> ApiToken | None:
    """Return the token that works with this secret, with its owner."""
    digest = digest_secret(secret)
    row = ApiToken.objects.select_related("owner").filter(digest=digest).first()
    if row is None or not constant_time_compare(row.digest, digest):
        return None
    is_active = find_token_state(row, now) is TokenState.ACTIVE and row.owner.is_active
    return row if is_active else None


def count_request(token: ApiToken, now: datetime) -> None:
    """Count a request in its minute, in one statement; raises TokenThrottled."""
    minute = now.replace(second=0, microsecond=0)
    has_room = Q(minute=None) | ~Q(minute=minute) | Q(requests__lt=MOST_A_MINUTE)
    counted = Case(When(minute=minute, then=F("requests") + 1), default=Value(1))
    rows = ApiToken.objects.filter(has_room, pk=token.pk)
    if not rows.update(requests=counted, minute=minute, last_used_at=now):
        raise TokenThrottled(ceil((minute + timedelta(minutes=1) - now).total_seconds()))


def may_read(token: ApiToken, scope: str) -> bool:
    """Return whether a token has the scope and its owner the rights for it."""
    return scope in token.scopes.split(",") and scope in list_own_scopes(token.owner)


def find_token_state(row: ApiToken, now: datetime) -> TokenState:
    if row.revoked_at is not None:
        return TokenState.REVOKED
    return TokenState.ACTIVE if row.expires_at > now else TokenState.EXPIRED


def digest_secret(secret: str) -> str:
    """Return by what a secret is found that is not stored: its SHA-256 in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()
