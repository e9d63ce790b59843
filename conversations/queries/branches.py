"""The tree of turns: a path from one of its turns back to the first, and what lies below a turn.

A turn names the one before it, and its number is greater than that one's. So a path is one
recursive query, which ends where a page ends: a page costs the same in a long conversation.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from conversations.models import Conversation, Turn

#: More turns than a path can have.
ALL = 2**31 - 1
#: Turns from the end of a path that every page of it shows.
NEAR = 20
_PATH = """
WITH RECURSIVE way(number, parent, steps) AS (
  SELECT number, parent, 1 FROM conversations_turn
  WHERE conversation_id = %s AND number = %s AND number >= %s
  UNION ALL
  SELECT turn.number, turn.parent, way.steps + 1
  FROM way JOIN conversations_turn turn ON turn.number = way.parent
  WHERE turn.conversation_id = %s AND turn.number >= %s AND way.steps < %s
) SELECT number FROM way
"""
_BELOW = """
WITH RECURSIVE below(number) AS (
  SELECT number FROM conversations_turn WHERE conversation_id = %s AND number = %s
  UNION ALL
  SELECT turn.number FROM below JOIN conversations_turn turn ON turn.parent = below.number
  WHERE turn.conversation_id = %s
) SELECT MAX(number) FROM below
"""


def path_turns(
    conversation: Conversation, *, end: int | None = None, start: int = 0, most: int = ALL
) -> QuerySet[Turn]:
    """Give the turns of the path that ends with turn `end` (else of the shown one).

    `start` is the lowest number of interest, `most` how many turns back from the end.
    """
    end = conversation.leaf if end is None else end
    key = conversation.pk
    numbers = RawSQL(_PATH, (key, end, start, key, start, most))  # noqa: S611 - no text of others
    return conversation.turns.filter(number__in=numbers)


def is_shown(conversation: Conversation, number: int) -> bool:
    """Say whether a turn lies on the shown path."""
    return path_turns(conversation, start=number).filter(number=number).exists()


def is_near(conversation: Conversation, number: int) -> bool:
    """Say whether a turn is among the last ones of the shown path."""
    return path_turns(conversation, most=NEAR).filter(number=number).exists()


def newest_below(conversation: Conversation, number: int) -> int:
    """Give the newest turn behind a turn: the end of a path through it; 0 when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_BELOW, (conversation.pk, number, conversation.pk))
        (newest,) = cursor.fetchone()
    return newest or 0


def end_of(conversation: Conversation, number: int) -> int:
    """Give the last turn of the shown path if a turn lies on it, else of the newest through it."""
    if not number or is_shown(conversation, number):
        return conversation.leaf
    return newest_below(conversation, number)


def version_id(public_id: UUID, count: int) -> UUID:
    """Give the id under which a version of a turn is asked for where so many are known."""
    return uuid5(public_id, f"version {count + 1}")


def versions(conversation: Conversation, parents: set[int]) -> dict[int, list[int]]:
    """Give the turns that follow each of some turns, in the order they were made."""
    rows = conversation.turns.filter(parent__in=parents).order_by("number")
    found: dict[int, list[int]] = {}
    for parent, number in rows.values_list("parent", "number"):
        found.setdefault(parent, []).append(number)
    return found
