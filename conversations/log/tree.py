"""The tree of turns: a path from a turn back to the first, and the turns after a turn.

A turn references the turn before it, whose number is lower. So a path is one recursive query that
ends after the turns of one page: a page costs the same however long the conversation is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.lookups import In

from conversations.log.findings import split_chunks
from conversations.models import Conversation, Turn

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

#: More turns than any path can have.
ALL_TURNS = 2**31 - 1
#: Turns from the end of a path that every page of it shows.
NEAR_TURNS = 20
_PATH = """
WITH RECURSIVE way(id, key, parent, steps) AS (
  SELECT id, conversation_id, parent, 1 FROM conversations_turn
  WHERE conversation_id = %s AND number = %s AND number >= %s
  UNION ALL
  SELECT turn.id, turn.conversation_id, turn.parent, way.steps + 1
  FROM way JOIN {before} turn ON turn.conversation_id = way.key AND turn.number = way.parent
  WHERE way.parent >= %s AND way.steps < %s
) SELECT id FROM way
"""
#: The table in which the turn before each row of `way` is found. With statistics older than a
#: conversation, as after an import, PostgreSQL may choose any index and scan all turns for each
#: row; only one index has them in this order.
_BEFORE = {
    "sqlite": "conversations_turn",
    "postgresql": """LATERAL (
    SELECT * FROM conversations_turn WHERE (conversation_id, number) <= (way.key, way.parent)
    ORDER BY conversation_id DESC, number DESC LIMIT 1
  )""",
}


#: Raw SQL, because every frame of a turn asks for this.
_VERSIONS = """
SELECT parent, number FROM conversations_turn
WHERE conversation_id = %s AND parent IN ({places}) ORDER BY number"""


class _Among(In):
    """Condition: a field is among the rows of a query that must run only once.

    If its statistics are older than a conversation, as after an import, PostgreSQL runs the rows of
    `IN (WITH ...)` again for each turn and message, which takes minutes. It reads an array once.
    """

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[object, ...]]:
        """Write the condition with an array in place of a joined query."""
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = compiler.compile(self.rhs)
        return f"{left} = ANY(ARRAY{right})", (*left_params, *right_params)


def build_path_condition(
    turn: str,
    conversation: Conversation,
    *,
    end: int | None = None,
    start: int = 0,
    most: int = ALL_TURNS,
) -> _Among:
    """Return the condition that the field `turn` references a turn of the path that ends with
    `end`.

    By default it is the shown path. `start` is the lowest number of interest, `most` the number of
    turns back from the end.
    """
    end = conversation.leaf if end is None else end
    key = conversation.pk
    ids = RawSQL(complete_path_query(_PATH), (key, end, start, start, most))  # noqa: S611 - no text of others
    return _Among(F(turn), ids)


def write_path_query(conversation: Conversation, end: int, most: int) -> tuple[str, list[int]]:
    """Write the condition on a turn's id that `build_path_condition` states, and its values."""
    among = "= ANY(ARRAY({}))" if connection.vendor == "postgresql" else "IN ({})"
    return among.format(complete_path_query(_PATH)), [conversation.pk, end, 0, 0, most]


def add_zone(value: datetime) -> datetime:
    """Return a time as the database gives it, which is UTC without a zone on SQLite."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def complete_path_query(statement: str) -> str:
    """Insert the table from which the database reads the turn before each row of `way`."""
    return statement.replace("{before}", _BEFORE[connection.vendor])


def filter_path_turns(
    conversation: Conversation, *, end: int | None = None, start: int = 0, most: int = ALL_TURNS
) -> QuerySet[Turn]:
    """Return the turns of a path; see `build_path_condition`."""
    return conversation.turns.filter(
        build_path_condition("pk", conversation, end=end, start=start, most=most)
    )


def is_shown(conversation: Conversation, number: int) -> bool:
    """Return whether a turn is on the shown path."""
    return filter_path_turns(conversation, start=number).filter(number=number).exists()


def is_near(conversation: Conversation, number: int) -> bool:
    """Return whether a turn is among the last NEAR_TURNS of the shown path."""
    return filter_path_turns(conversation, most=NEAR_TURNS).filter(number=number).exists()


def find_newest_below(conversation: Conversation, number: int) -> int:
    """Return the newest turn at or after a turn in the tree; 0 where there is none."""
    below, newest = set[int](), 0
    rows = conversation.turns.filter(number__gte=number).order_by("number")
    for each, parent in rows.values_list("number", "parent"):
        if each == number or parent in below:
            below.add(each)
            newest = each
    return newest


def find_path_end(conversation: Conversation, number: int) -> int:
    """Return the end of the shown path if the turn is on it, else of the newest path through it."""
    if not number or is_shown(conversation, number):
        return conversation.leaf
    return find_newest_below(conversation, number)


def make_version_id(public_id: UUID, count: int) -> UUID:
    """Return the id of a turn's next version, given the number of known versions."""
    return uuid5(public_id, f"version {count + 1}")


def list_versions(conversation: Conversation, parents: set[int]) -> dict[int, list[int]]:
    """Return the turns that follow each of the parents, in the order they were made."""
    found: dict[int, list[int]] = {}
    for some in split_chunks(sorted(parents)):
        places = ", ".join(["%s"] * len(some))
        with connection.cursor() as cursor:
            cursor.execute(_VERSIONS.format(places=places), [conversation.pk, *some])
            for parent, number in cursor.fetchall():
                found.setdefault(parent, []).append(number)
    return found


def find_version_position(row: Turn, numbers: list[int]) -> VersionPosition | None:
    """Return the position of a turn among its versions; None when it is the only one."""
    if len(numbers) < 2:
        return None
    at = numbers.index(row.number)
    return VersionPosition(
        at + 1,
        len(numbers),
        numbers[at - 1] if at else None,
        numbers[at + 1] if at + 1 < len(numbers) else None,
    )


@dataclass(frozen=True, slots=True)
class VersionPosition:
    """Position and count of a turn's versions, and the numbers of its neighbours."""

    position: int
    count: int
    previous: int | None
    next: int | None
