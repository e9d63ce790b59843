"""Texts that many rows reference by digest: stored once, erased when no row references them.

A writer finds an existing text and references it in one transaction, and an eraser must not delete
it in between. So writers share an advisory lock that an eraser takes exclusively. SQLite has one
writer at a time, which has the same effect.
"""

from __future__ import annotations

from django.db import connection

from conversations.context.view import wire
from conversations.models import Blob

_LOCK = 0x61_67_77_74


def lock_texts_shared() -> None:
    """Block erasers until the transaction ends; for transactions that store texts."""
    _lock("pg_advisory_xact_lock_shared")


def lock_texts_exclusively() -> None:
    """Wait for writers of texts, and block others until the transaction ends."""
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [_LOCK])


def make_storable(text: str) -> str:
    """Replace what a column refuses: NUL on PostgreSQL, lone surrogates in UTF-8."""
    return wire.clean(text).replace("\0", "\ufffd")


def store_blob(text: str) -> str:
    """Store a text under its digest, once, and return the digest."""
    digest = wire.digest(text)
    lock_texts_shared()
    Blob.objects.bulk_create([Blob(digest=digest, text=text)], ignore_conflicts=True)
    return digest
