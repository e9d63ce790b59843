"""The body of one request, handed to the app as it arrives."""

from __future__ import annotations

from typing import Protocol

from agentweb.emulator.asgi import Message
from agentweb.emulator.http_head import BadHead, Head


class Source(Protocol):
    @property
    def buffer(self) -> bytearray: ...

    async def more(self) -> bool: ...

    async def write(self, data: bytes) -> None: ...


class Body:
    def __init__(self, source: Source, head: Head) -> None:
        self._source = source
        self._chunked = head.length is None
        self._left = head.length or 0
        self._continue = head.expects_continue
        self._ended = not self._chunked and not self._left
        #: The app has been told that there is no more.
        self.told = False

    @property
    def complete(self) -> bool:
        """Nothing of it is left on the wire."""
        return self._ended

    async def read(self) -> Message:
        if self._ended:
            self.told = True
            return {"type": "http.request", "body": b"", "more_body": False}
        if self._continue:
            self._continue = False
            await self._source.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        data = await (self._read_chunk() if self._chunked else self._read_plain())
        if data is None:
            return {"type": "http.disconnect"}
        self.told = self._ended
        return {"type": "http.request", "body": data, "more_body": not self._ended}

    async def _read_plain(self) -> bytes | None:
        buffer = self._source.buffer
        while not buffer:
            if not await self._source.more():
                return None
        data = bytes(buffer[: self._left])
        del buffer[: len(data)]
        self._left -= len(data)
        self._ended = not self._left
        return data

    async def _read_chunk(self) -> bytes | None:
        if not self._left:
            size = await self._read_size()
            if size is None:
                return None
            self._left = size
            if not size:
                self._ended = True
                return b"" if await self._read_line() is not None else None
        data = await self._take()
        if data is not None and not self._left and await self._read_line() is None:
            return None
        return data

    async def _take(self) -> bytes | None:
        buffer = self._source.buffer
        while not buffer:
            if not await self._source.more():
                return None
        data = bytes(buffer[: self._left])
        del buffer[: len(data)]
        self._left -= len(data)
        return data

    async def _read_size(self) -> int | None:
        line = await self._read_line()
        if line is None:
            return None
        try:
            return int(line.split(b";")[0], 16)
        except ValueError as error:
            raise BadHead(400) from error

    async def _read_line(self) -> bytes | None:
        buffer = self._source.buffer
        while (end := buffer.find(b"\r\n")) < 0:
            if not await self._source.more():
                return None
        line = bytes(buffer[:end])
        del buffer[: end + 2]
        return line
