"""Valid sessions: not expired, of an active user, started with the present password.

A person sees their own, each under a name that is no key, and ends one, the others or all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from conversations.db import transact
from conversations.models import Session, User

T = TypeVar("T")
#: Keys in one query; SQLite limits its parameters to some thousands.
MOST = 500
_SALT = "agentweb.session_name"


@dataclass(frozen=True, slots=True)
class OwnSession:
    """A session as its person is shown it."""

    #: Names it in the form that ends it.
    name: str
    device: str
    network: str
    began_at: datetime | None
    seen_at: datetime | None
    is_current: bool


def find_valid_sessions(owners: Mapping[str, int], known: Mapping[str, str]) -> dict[str, str]:
    """Return the valid session keys of these users, each with the evidence for it.

    `known` is the last result: a session with the same evidence is not decoded again.
    """
    rows: dict[str, str] = {}
    now = timezone.now()
    for keys in _split(owners):
        found = Session.objects.filter(session_key__in=keys, expire_date__gt=now)
        rows.update(found.values_list("session_key", "session_data"))
    users = {}
    for ids in _split(set(owners.values())):
        users.update(User.objects.filter(is_active=True).in_bulk(ids))
    valid = {}
    for key, data in rows.items():
        user = users.get(owners[key])
        if user is not None:
            vouching = f"{user.password}:{user.session_epoch}:{data}"
            if known.get(key) == vouching or _is_of(Session(session_data=data).get_decoded(), user):
                valid[key] = vouching
    return valid


def find_session_user(session: SessionBase) -> User | None:
    """Return the active person whose valid session it is; the session stays as it is."""
    user = User.objects.filter(pk=session.get(SESSION_KEY, 0), is_active=True).first()
    return user if user is not None and _is_of(session, user) else None


def _is_of(session: Mapping[str, Any] | SessionBase, user: User) -> bool:
    """Return whether the session is the user's and was started with the present password."""
    if session.get(SESSION_KEY) != str(user.pk):
        return False
    expected = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    found = session.get(HASH_SESSION_KEY, "")
    return any(constant_time_compare(found, each) for each in expected)


def _split(names: Collection[T]) -> Iterator[list[T]]:
    left = iter(names)
    while part := list(islice(left, MOST)):
        yield part


def list_own_sessions(*, user: User, current: str | None) -> list[OwnSession]:
    """Return the person's valid sessions: the one of this key first, then as last seen."""
    rows = Session.objects.filter(user=user, expire_date__gt=timezone.now())
    found = {row.session_key: row for row in rows}
    valid = find_valid_sessions(dict.fromkeys(found, user.pk), {})
    own = [
        OwnSession(
            _name_session(key), row.device, row.network, row.began_at, row.seen_at, key == current
        )
        for key, row in found.items()
        if key in valid
    ]
    never = datetime.min.replace(tzinfo=UTC)
    own.sort(key=lambda one: (one.is_current, one.seen_at or never), reverse=True)
    return own


def find_own_session(*, user_id: int, name: str) -> str:
    """Return the key of the person's session of this name, or ""."""
    keys = Session.objects.filter(user=user_id).values_list("session_key", flat=True)
    return next((key for key in keys if constant_time_compare(_name_session(key), name)), "")


def end_session(*, user_id: int, key: str) -> bool:
    """End one session of a person; return whether there was one."""
    return bool(Session.objects.filter(user=user_id, session_key=key).delete()[0])


@transact
def end_sessions(*, user_id: int) -> User:
    """End all sessions of a person; the view stores the new hash in the current one, if it stays.

    One that logs in at this moment ends as well: its hash is of before.
    """
    user = User.objects.select_for_update().get(pk=user_id)
    user.session_epoch += 1
    user.save(update_fields=["session_epoch"])
    return user


def sweep_sessions() -> int:
    """Delete sessions that can be used no more; return how many."""
    return Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]


def _name_session(key: str) -> str:
    return salted_hmac(_SALT, key, algorithm="sha256").hexdigest()[:32]
