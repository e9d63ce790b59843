"""Valid sessions: not expired, of an active user, started with the present password."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.models import User

T = TypeVar("T")
#: Keys in one query; SQLite limits its parameters to some thousands.
MOST = 500


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
            if known.get(key) == vouching or _is_of(data, user):
                valid[key] = vouching
    return valid


def _is_of(data: str, user: User) -> bool:
    """Return whether the session is the user's and was started with the present password."""
    session = Session(session_data=data).get_decoded()
    if session.get(SESSION_KEY) != str(user.pk):
        return False
    expected = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    found = session.get(HASH_SESSION_KEY, "")
    return any(constant_time_compare(found, each) for each in expected)


def _split(names: Collection[T]) -> Iterator[list[T]]:
    left = iter(names)
    while part := list(islice(left, MOST)):
        yield part
