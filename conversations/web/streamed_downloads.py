"""Downloads that are produced while they are sent, a few at a time for each person.

Each holds a thread and a database connection, so the number of one person's downloads is limited in
every process, and they do not delay other people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from threading import Lock

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from conversations.budgets.usage.cells import Cell, write_csv_lines, write_json_lines

#: Bytes that are collected before they are sent.
PIECE = 32_768
#: Concurrent downloads of one person in a process.
MOST_AT_ONCE = 3

_lock = Lock()
_running: Counter[int] = Counter()


class TooManyDownloads(Exception):
    """Too many downloads of a person started at the same moment, so this one is aborted."""

    code = "too_many_downloads"


def stream_rows(
    request: HttpRequest, rows: Iterable[Iterable[Cell]], name: str
) -> HttpResponseBase:
    """Send rows, of which the first has the names: as JSON lines if `name` ends so, else as CSV."""
    if name.endswith(".jsonl"):
        return stream_download(request, write_json_lines(rows), name, "application/x-ndjson")
    return stream_download(request, write_csv_lines(rows), name, "text/csv; charset=utf-8")


def stream_download(
    request: HttpRequest, pieces: Iterator[bytes], name: str, content_type: str
) -> HttpResponseBase:
    """Send pieces as an attachment; 429 when the person has too many downloads."""
    key = request.user.pk or 0
    if has_all_slots(key):
        words = _("Other downloads of yours are still on their way. Try again when they are done.")
        return render(request, "429.html", {"words": words}, status=429)
    lumps = _hold_slot(key, _buffer(pieces))
    content = _iterate(lumps) if isinstance(request, ASGIRequest) else lumps
    response = StreamingHttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["Cache-Control"] = "no-store"
    return response


def has_all_slots(key: int) -> bool:
    """Return whether a person has as many downloads as they may have at once."""
    return _running[key] >= MOST_AT_ONCE


def _hold_slot(key: int, lumps: Iterator[bytes]) -> Iterator[bytes]:
    """Hold one of a person's download slots until all is sent or the client is gone."""
    with _lock:
        if _running[key] >= MOST_AT_ONCE:
            raise TooManyDownloads
        _running[key] += 1
    try:
        yield from lumps
    finally:
        with _lock:
            _running[key] -= 1
            if not _running[key]:
                del _running[key]


def _buffer(pieces: Iterator[bytes]) -> Iterator[bytes]:
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) >= PIECE:
            yield bytes(found)
            found.clear()
    if found:
        yield bytes(found)


async def _iterate(lumps: Iterator[bytes]) -> AsyncIterator[bytes]:
    # Django would otherwise read everything before it sends the first byte.
    while lump := await sync_to_async(lambda: next(lumps, b""))():
        yield lump
