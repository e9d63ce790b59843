"""Texts that many rows may name by their digest: stored once, erased when nobody names them.

A writer finds a text already there and names it in the same transaction; an eraser must not take it
away in between. So writers share a lock of the database that an eraser has alone. SQLite has one
writer at a time, which is the same.
"""

from __future__ import annotations

from django.db import connection

from conversations.context.view import wire
from conversations.models import Blob

_LOCK = 0x61_67_77_74


def lock_texts_shared() -> None:
    """Let no eraser come between finding a text and naming it; until the transaction ends."""
    _lock("pg_advisory_xact_lock_shared")


def lock_texts_exclusively() -> None:
    """Wait for those who are storing texts, and keep others out until the transaction ends."""
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [_LOCK])


def make_storable(text: str) -> str:
    """Give foreign text as a column takes it: PostgreSQL refuses NUL, UTF-8 lone surrogates."""
    return wire.clean(text).replace("\0", "\ufffd")


def store_blob(text: str) -> str:
    """Store a text under its digest, once, and give the digest."""
    digest = wire.digest(text)
    lock_texts_shared()
    Blob.objects.bulk_create([Blob(digest=digest, text=text)], ignore_conflicts=True)
    return digest
