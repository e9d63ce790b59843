"""The body of an answer, read in pieces and counted twice: as received and as decoded.

Only gzip is requested and only one layer of it is decoded, with the remaining bytes as the limit of
zlib, so a decompression bomb costs no more than the cap. A body over the cap is refused rather than
cut, since half a page of unknown length is worse than a clear error.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx2

from tools.framework.errors import BodyRefusedError

ENCODING = "gzip"


class BoundedBody(httpx2.AsyncByteStream):
    """The decoded body of an answer; reading more than `most` bytes raises BodyRefusedError."""

    def __init__(self, response: httpx2.Response, most: int) -> None:
        self._response, self._most = response, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        encodings = _content_encodings(self._response)
        if encodings not in ([], [ENCODING]):
            raise BodyRefusedError(
                f"The content encoding {', '.join(encodings)[:80]!r} is not supported."
            )
        announced = self._response.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > self._most:
            raise _too_large(self._most)
        pieces = _count_received(self._response, self._most)
        async for piece in _gunzip(pieces, self._most) if encodings else pieces:
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


async def _count_received(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    received = 0
    async for piece in response.aiter_raw():
        received += len(piece)
        if received > most:
            raise _too_large(most)
        yield piece


async def _gunzip(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    room, received = most + 1, False
    try:
        async for piece in pieces:
            received = True
            data = inflate.decompress(piece, room)
            room -= len(data)
            if room <= 0:
                raise _too_large(most)
            yield data
    except zlib.error as error:
        raise BodyRefusedError("The body is not valid gzip.") from error
    if received and not inflate.eof:
        raise BodyRefusedError("The body ended before its gzip stream did.")


def _content_encodings(response: httpx2.Response) -> list[str]:
    named = ",".join(response.headers.get_list("content-encoding")).lower().split(",")
    return [each.strip() for each in named if each.strip() not in ("", "identity")]


def _too_large(most: int) -> BodyRefusedError:
    return BodyRefusedError(f"The body is larger than {most:,} bytes.")
