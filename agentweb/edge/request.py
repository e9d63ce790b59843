"""One request: its body is stored in a file and read when the application asks for it.

Daphne would hold the body in memory, and Twisted would parse it as well, before any view runs.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any

from daphne.http_protocol import WebRequest
from django.conf import settings

from agentweb.edge.body_limits import SMALL, held
from agentweb.edge.error_responses import describe_status, make_headers

logger = logging.getLogger("agentweb.edge")
_WebRequest: Any = WebRequest
#: Bytes of a body that the application gets at a time.
CHUNK = 65_536
#: Parts that a body may arrive in, whatever their size; with more parts their mean size must be at
#: least `FEW` bytes, since each part costs work however small it is.
MOST_PARTS, FEW = 2_000, 64


class Inbox(asyncio.Queue[Any]):
    """The application's receive queue: the body in chunks on demand, then later messages."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self._body = body

    def put_nowait(self, item: Any) -> None:
        # Daphne's own message of the (empty) body; `get` reads the real one.
        if item["type"] != "http.request":
            super().put_nowait(item)

    async def get(self) -> Any:
        if self._body is None or self._body.closed or not self.empty():
            return await super().get()
        chunk = self._body.read(CHUNK)
        is_whole = len(chunk) < CHUNK
        if is_whole:
            self._body = None
        else:
            await asyncio.sleep(0)
        return {"type": "http.request", "body": chunk, "more_body": not is_whole}


class Request(_WebRequest):  # type: ignore[misc]
    def __init__(self, channel: Any, queued: Any = False) -> None:
        super().__init__(channel, queued, parsePOSTFormSubmission=False)
        self.flow = channel.flow
        self.most = SMALL
        self.body: Any = None
        self._size = self._held = self._parts = 0

    #: Twisted's own names the URL, which may contain a secret; Daphne logs it of a late request.
    __repr__ = object.__repr__

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's names
        folder = settings.FILE_UPLOAD_TEMP_DIR
        self.content = BytesIO() if length == 0 else SpooledTemporaryFile(SMALL, dir=folder)  # noqa: SIM115

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if self.channel.is_refused:
            return
        self._size += len(data)
        self._parts += 1
        if self._parts > MOST_PARTS and self._size < self._parts * FEW:
            self.channel.refuse(HTTPStatus.BAD_REQUEST)
        elif self._size > self.most:
            self.channel.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif not self._hold():
            self.channel.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._keep(data)

    def _hold(self) -> bool:
        """Reserve the bytes beyond a small body from the allowance of the process."""
        size = max(0, self._size - SMALL) - self._held
        if size and not held.take(size):
            return False
        self._held += size
        return True

    def _keep(self, data: bytes) -> None:
        try:
            self.content.write(data)
        except OSError as error:
            logger.error("a body could not be kept: %s", error)  # noqa: TRY400 - no stack needed
            self.channel.refuse(HTTPStatus.INSUFFICIENT_STORAGE)
        else:
            self.channel.advance(len(data))

    def process(self) -> Any:
        # Daphne gets an empty body; ours is read through the inbox.
        self.body, self.content = self.content, BytesIO()
        done = super().process()
        if self.transport is None:
            # It became a WebSocket, which has no body; `finish` is never called for this request,
            # and the channel would refer to it for as long as it refers to the channel.
            self.forget()
            self.channel.requests.clear()
        return done

    def inbox(self) -> Inbox:
        self.body.seek(0)
        return Inbox(self.body)

    def forget(self) -> None:
        """Release the body."""
        held.give_back(self._held)
        self._held = 0
        for file in (self.body, self.content):
            if file is not None:
                file.close()

    def finish(self) -> None:
        self.forget()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self.forget()
        super().connectionLost(reason)

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Respond with an error without the application, or abort a response that has begun."""
        if self._response_started:
            if self.channel is not None and not self.finished:
                self.channel.transport.abortConnection()
            return
        start = {"type": "http.response.start", "status": status, "headers": make_headers()}
        self.handle_reply(start)
        self.handle_reply({"type": "http.response.body", "body": describe_status(status)})
