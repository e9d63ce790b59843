"""What open pages rest on, asked for all pages of a process at once.

Whether their sessions still hold, and a mark of each conversation that differs once anything it
shows is different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.marks import Mark
from conversations.models import LIVE, User

#: Names in one statement; SQLite takes some thousands.
MOST = 500
#: By hand: it is asked behind each state that another process tells.
_MARKS = f"""
SELECT c.id, c.head, c.tip, c.leaf,
  (SELECT t.state FROM conversations_turn t
   WHERE t.conversation_id = c.id AND t.state IN ({", ".join(["%s"] * len(LIVE))}) LIMIT 1),
  (SELECT MAX(t.id) FROM conversations_turn t WHERE t.conversation_id = c.id),
  (SELECT t.parent FROM conversations_turn t
   WHERE t.conversation_id = c.id AND t.number = c.leaf),
  c.title,
  (SELECT COUNT(*) FROM conversations_queuedprompt q WHERE q.conversation_id = c.id)
FROM conversations_conversation c WHERE c.deleted_at IS NULL AND c.id IN ({{ids}})
"""  # noqa: S608 - nothing but places for parameters


def good_sessions(asked: Mapping[str, int], known: Mapping[str, str]) -> dict[str, str]:
    """Give those sessions that still belong to these users, each with what vouches for it.

    `known` is what was given before: what is still vouched for by the same is not read again.
    """
    rows: dict[str, str] = {}
    now = timezone.now()
    for keys in _chunks(asked):
        found = Session.objects.filter(session_key__in=keys, expire_date__gt=now)
        rows.update(found.values_list("session_key", "session_data"))
    users = {}
    for ids in _chunks(set(asked.values())):
        users.update(User.objects.filter(is_active=True).in_bulk(ids))
    good = {}
    for key, data in rows.items():
        user = users.get(asked[key])
        if user is not None:
            vouching = f"{user.password}:{user.session_epoch}:{data}"
            if known.get(key) == vouching or _is_of(data, user):
                good[key] = vouching
    return good


def marks(conversation_ids: Iterable[int]) -> dict[int, Mark]:
    """Give the marks of those that are kept; what is in the trash, or erased, has none."""
    found: dict[int, Mark] = {}
    with connection.cursor() as cursor:
        for ids in _chunks(set(conversation_ids)):
            cursor.execute(_MARKS.format(ids=_places(ids)), [*LIVE, *ids])
            for key, *turns, before, title, number in cursor.fetchall():
                leaf, is_live = turns[2], turns[3] is not None
                found[key] = Mark(tuple(turns), leaf, before or 0, title, number, is_live)
    return found


def _places(values: Collection[object]) -> str:
    return ", ".join(["%s"] * len(values))


def _is_of(data: str, user: User) -> bool:
    """Say whether the session is the user's, begun with the present password: a new one ends it."""
    session = Session(session_data=data).get_decoded()
    if session.get(SESSION_KEY) != str(user.pk):
        return False
    known = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    found = session.get(HASH_SESSION_KEY, "")
    return any(constant_time_compare(found, each) for each in known)


def _chunks(names: Collection[str] | Collection[int]) -> Iterator[list[str] | list[int]]:
    left = iter(names)
    while chunk := list(islice(left, MOST)):
        yield chunk  # type: ignore[misc]
