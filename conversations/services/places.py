"""The place of a new row, as SQL: behind the end of its chain, and where no other row stands."""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

from collections.abc import Iterator

from django.db.models import UniqueConstraint

from conversations.models import ApiCall, AppendOnly, Chained, Conversation, SiteChain
from conversations.services.chain import OWNED, SITE

_CONVERSATIONS, _CALLS = Conversation._meta.db_table, ApiCall._meta.db_table
#: Where the conversation of a row says that its chain ends, by the row's path to it.
_ENDS = {
    "conversation": f'SELECT links FROM "{_CONVERSATIONS}" WHERE id = NEW.conversation_id',
    "call__conversation": f'SELECT c.links FROM "{_CONVERSATIONS}" c JOIN "{_CALLS}" a'
    " ON a.conversation_id = c.id WHERE a.id = NEW.call_id",
}
_SITE_END = f'SELECT links FROM "{SiteChain._meta.db_table}" WHERE id = 1'


def postgresql(kind: type[Chained]) -> str:
    """Write the function that refuses a row at a link that its chain has passed."""
    table = kind._meta.db_table
    return (
        f'CREATE OR REPLACE FUNCTION "{table}_place"() RETURNS trigger LANGUAGE plpgsql AS $$'
        f" BEGIN IF {_passed(kind)} THEN RAISE EXCEPTION 'table % is append-only: its chain has"
        " passed link %', TG_TABLE_NAME, NEW.link USING ERRCODE = 'restrict_violation'; END IF;"
        " RETURN NEW; END $$"
    )


def sqlite(kind: type[AppendOnly]) -> str:
    """Write the condition on which a row has no place: another stands there, or the chain ends
    behind it.
    """
    table = kind._meta.db_table
    taken = [
        f'EXISTS (SELECT 1 FROM "{table}" WHERE '
        + " AND ".join(f'"{column}" = NEW."{column}"' for column in columns)
        + ")"
        for columns in _unique(kind)
    ]
    if issubclass(kind, Chained):
        taken.append(_passed(kind))
    return " OR ".join(taken)


def _passed(kind: type[Chained]) -> str:
    if kind not in OWNED:
        end = _SITE_END
    elif kind in SITE:
        end = f"CASE WHEN NEW.call_id IS NULL THEN ({_SITE_END}) ELSE ({_ENDS[OWNED[kind]]}) END"
    else:
        end = _ENDS[OWNED[kind]]
    return f"NEW.link <= COALESCE(({end}), 0)"


def _unique(kind: type[AppendOnly]) -> Iterator[list[str]]:
    columns = {field.name: str(field.column) for field in kind._meta.concrete_fields}
    for field in kind._meta.concrete_fields:
        if field.unique:
            yield [columns[field.name]]
    for one in kind._meta.constraints:
        if isinstance(one, UniqueConstraint) and one.condition is None:
            yield [columns[name] for name in one.fields]
