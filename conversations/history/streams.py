"""Answers that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

#: Bytes that are collected before they are sent.
PIECE = 32_768


def download(
    request: HttpRequest, pieces: Iterator[bytes], name: str, content_type: str
) -> StreamingHttpResponse:
    """Send pieces as a file to keep, never as a page of this site."""
    lumps = _lumps(pieces)
    content = _awaited(lumps) if isinstance(request, ASGIRequest) else lumps
    response = StreamingHttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response["Cache-Control"] = "no-store"
    return response


def _lumps(pieces: Iterator[bytes]) -> Iterator[bytes]:
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) >= PIECE:
            yield bytes(found)
            found.clear()
    if found:
        yield bytes(found)


async def _awaited(lumps: Iterator[bytes]) -> AsyncIterator[bytes]:
    # Django would otherwise read everything before it sends the first byte.
    while lump := await sync_to_async(lambda: next(lumps, b""))():
        yield lump
