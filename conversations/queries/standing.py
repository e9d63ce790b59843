"""What open pages rest on, asked for all pages of a process at once.

Whether their sessions still hold, and a mark of each conversation that differs once anything it
shows is different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db.models import Count, OuterRef, Subquery
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.marks import Mark
from conversations.models import LIVE, Conversation, QueuedPrompt, Turn, User

#: Names in one statement; SQLite takes some thousands.
MOST = 500


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
    live = Turn.objects.filter(conversation=OuterRef("pk"), state__in=LIVE)
    newest = Turn.objects.filter(conversation=OuterRef("pk")).order_by("-pk")
    last = Turn.objects.filter(conversation=OuterRef("pk"), number=OuterRef("leaf"))
    waiting = QueuedPrompt.objects.filter(conversation=OuterRef("pk")).order_by()
    for ids in _chunks(set(conversation_ids)):
        rows = Conversation.objects.filter(pk__in=ids, deleted_at=None).values_list(
            "pk", "head", "tip", "leaf",
            Subquery(live.values("state")[:1]),
            Subquery(newest.values("pk")[:1]),
            Subquery(last.values("parent")[:1]),
            "title",
            Subquery(waiting.values("conversation").annotate(n=Count("pk")).values("n")),
        )  # fmt: skip
        for key, *turns, before, title, number in rows:
            leaf, is_live = turns[2], turns[3] is not None
            found[key] = Mark(tuple(turns), leaf, before or 0, title, number or 0, is_live)
    return found


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
