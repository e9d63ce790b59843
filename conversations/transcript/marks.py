"""What open pages rest on, asked for all pages of a process at once.

Whether their sessions still hold, and a mark of each conversation that differs once anything it
shows is different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.agent.events import (
    Event,
    QueueChanged,
    TitleChanged,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)
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


#: Events that say how a turn stands.
WHOLE = (TurnOpened, TurnChanged, TurnClosed)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a conversation shows, in short: equal marks show the same."""

    turns: tuple[object, ...]
    #: The turn that the shown path ends with, and the one before it; 0: none.
    leaf: int
    before: int
    title: str
    #: Messages that wait.
    waiting: int
    #: Whether a turn has not ended.
    is_live: bool = True

    def follows(self, shown: Mark) -> bool:
        """Say whether the path is that of `shown`, or one turn longer."""
        return shown.leaf in (self.leaf, self.before)


def leads_to(mark: Mark, shown: Mark | None, event: Event) -> bool:
    """Say whether pages that show so much have all that the event's frame needs.

    Of those that nobody knows of, each is about to be given a snapshot.
    """
    if shown is None:
        return True
    is_state = isinstance(event, TurnChanged | TurnClosed) and event.turn == mark.leaf
    return shown.leaf == mark.leaf or (mark.follows(shown) and not is_state)


def is_past(event: Event, mark: Mark) -> bool:
    """Say whether the turn went on since: a state would leave out what it said until its end.

    A page that has come meanwhile has it among those that have ended, so it cannot be added either.
    """
    if isinstance(event, TurnOpened):
        return not mark.is_live or event.turn != mark.leaf
    return isinstance(event, TurnChanged) and not mark.is_live


def shows(event: Event, mark: Mark) -> bool:
    """Say whether the frame shows the newest turn of the path, and so all of what is new."""
    return isinstance(event, WHOLE) and event.turn == mark.leaf


def after(event: Event, mark: Mark, shown: Mark) -> Mark:
    """Give what pages show behind the frame, which has the title or what waits, or has not."""
    has_queue = isinstance(event, TurnOpened | TurnClosed | QueueChanged)
    return replace(
        mark,
        title=mark.title if isinstance(event, TitleChanged) else shown.title,
        waiting=mark.waiting if has_queue else shown.waiting,
    )


def is_of_turns(mark: Mark, shown: Mark | None) -> bool:
    """Say whether nothing but the title and what waits is new."""
    return shown is not None and mark.turns == shown.turns
