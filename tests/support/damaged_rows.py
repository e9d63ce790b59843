"""Damages rows of the log as somebody with full access to the database can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import Model

from conversations.context.view import wire
from conversations.log.triggers import install_guards, list_guard_verbs, list_guarded_models
from conversations.models import Conversation, Message, SearchText

Blocks = list[Any]


@contextmanager
def unguarded() -> Iterator[None]:
    """Remove the triggers inside the block."""
    with connection.cursor() as cursor:
        for kind in list_guarded_models():
            table = kind._meta.db_table
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            for verb in list_guard_verbs(kind):
                cursor.execute(f'DROP TRIGGER "{table}_keep_{verb}"{where}')
    try:
        yield
    finally:
        install_guards()


def list_messages(conversation: Conversation, kind: str) -> list[Message]:
    return list(conversation.messages.filter(kind=kind).order_by("seq"))


def change_content(row: Message, change: Callable[[Blocks], Blocks]) -> None:
    """Replace the blocks of a message."""
    put_text(row, wire.encode(change(wire.decode(row.content))))


def put_bytes(row: Model, column: str = "content") -> None:
    """Put bytes that are not UTF-8 behind a text, as SQLite alone lets one."""
    table, key = row._meta.db_table, row._meta.pk.column
    text = f"CAST(CAST({column} AS BLOB) || X'C3FF' AS TEXT)"
    with unguarded(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {text} WHERE {key} = %s", [row.pk])


def put_text(row: Message, text: str) -> None:
    with unguarded():
        Message.objects.filter(pk=row.pk).update(content=text)


def delete_row(row: Any) -> None:
    with unguarded():
        if isinstance(row, Message):
            SearchText.objects.filter(message=row).delete()
        rows = type(row)._base_manager.filter(pk=row.pk)
        rows._raw_delete(rows.db)
