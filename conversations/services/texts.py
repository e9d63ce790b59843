"""Texts that many rows may name by their digest: stored once, erased when nobody names them.

A writer finds a text already there and names it in the same transaction; an eraser must not take it
away in between. So writers share a lock of the database that an eraser has alone. SQLite has one
writer at a time, which is the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from conversations.models import ApiCall, Attachment, Blob, Envelope, ToolCall

_LOCK = 0x61_67_77_74


def share_texts() -> None:
    """Let no eraser come between finding a text and naming it; until the transaction ends."""
    _lock("pg_advisory_xact_lock_shared")


def claim_texts() -> None:
    """Wait for those who are storing texts, and keep others out until the transaction ends."""
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [_LOCK])


def orphaned_blobs(digests: Iterable[str]) -> QuerySet[Blob]:
    """Give those of the blobs that no row names any more.

    The files that prompts name are those of their conversation's attachments (queries/path.py).
    """
    files = Attachment.objects.filter(data=OuterRef("pk"))
    outputs = ToolCall.objects.filter(output=OuterRef("pk"))
    requests = ApiCall.objects.filter(messages=OuterRef("pk"))
    named = (~Exists(outputs), ~Exists(requests), ~Exists(files))
    return Blob.objects.filter(*named, pk__in=list(digests))


def orphaned_envelopes(digests: Iterable[str]) -> QuerySet[Envelope]:
    """Give those of the envelopes that no call names any more."""
    calls = ApiCall.objects.filter(envelope=OuterRef("pk"))
    return Envelope.objects.filter(~Exists(calls), pk__in=list(digests))
