"""One HTTP connection, with limits on the size and the time of heads and bodies.

Only progress resets the timeout: a complete head or another part of a body, not single bytes. A
refused request is answered at once, without the application. Then the connection is half closed and
further input is discarded for a moment, so that a TCP reset does not lose the response.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from twisted.protocols.basic import LineReceiver
from twisted.web.http import HTTPChannel

from agentweb.edge.body_limits import SMALL, find_body_limit
from agentweb.edge.error_responses import make_refusal
from agentweb.edge.flow import Flow
from agentweb.edge.request import Request

_HTTPChannel: Any = HTTPChannel
_LineReceiver: Any = LineReceiver
#: Timeouts in seconds: for a request head; for each part of a body; between two requests.
HEAD_SECONDS, PART_SECONDS, IDLE_SECONDS = 10, 10, 60
#: Bytes of a body after which its timeout starts again.
PART = 16_384
#: Seconds after which a response is cut if the peer takes none of it.
PATIENCE = 30.0
#: Seconds for which a refused connection is still read.
LINGER_SECONDS = 2.0


class Channel(_HTTPChannel):  # type: ignore[misc]
    flow: Flow

    def __init__(self) -> None:
        super().__init__()
        self.is_refused = self._is_idle = self._has_begun = False
        self._part = 0

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's names, here and below
        self.requestFactory = Request
        self.flow = Flow(self.transport, PATIENCE, self.transport.abortConnection)
        super().connectionMade()
        if not self.factory.server.descriptors.has_room(self.transport.fileno()):
            self.transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.is_refused:
            return
        self._has_begun = True
        if self._is_idle:
            self._is_idle = False
            self.setTimeout(HEAD_SECONDS)
        # Not the parent's method, which resets the timeout at every byte.
        _LineReceiver.dataReceived(self, data)

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.is_refused:
            return
        super().rawDataReceived(data)
        # While a response waits for the peer, Twisted would buffer all that the peer sends
        # meanwhile.
        if (
            self._handlingRequest
            and sum(map(len, self._dataBuffer)) > self._optimisticEagerReadSize
        ):
            self._networkProducer.pauseProducing()

    def allHeadersReceived(self) -> None:  # noqa: N802
        if not self.requests[-1].requestHeaders.hasHeader(b"host"):
            # Django would take the address it listens on for the name that was asked for.
            self.refuse(HTTPStatus.BAD_REQUEST)
            return
        if self.length is None or self.length > SMALL:
            most = self.requests[-1].most = find_body_limit(self._path)
            if self.length is not None and self.length > most:
                self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                return
        super().allHeadersReceived()
        self._part = 0
        if self.length != 0:
            self.setTimeout(PART_SECONDS)

    def allContentReceived(self) -> None:  # noqa: N802
        if not self.is_refused:
            super().allContentReceived()

    def advance(self, size: int) -> None:
        """Count `size` bytes of a body; start its timeout again after each `PART`."""
        self._part += size
        if self._part >= PART:
            self._part = 0
            self.resetTimeout()

    def requestDone(self, request: Any) -> None:  # noqa: N802
        self._is_idle, self._has_begun, self._savedTimeOut = True, False, IDLE_SECONDS
        super().requestDone(request)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802
        self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802
        is_large = self._receivedHeaderSize > self.totalHeadersSize
        if is_large or self._receivedHeaderCount > self.maxHeaders:
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            self.refuse(HTTPStatus.BAD_REQUEST)

    def timeoutConnection(self) -> None:  # noqa: N802
        if self._has_begun:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.loseConnection()

    def refuse(self, status: int) -> None:
        """Respond without the application, and read nothing more from this connection."""
        if self.is_refused:
            return
        self.is_refused = True
        self.setRawMode()
        self.setTimeout(None)
        for request in self.requests:
            request.forget()
        self._networkProducer.unregisterProducer()
        self.transport.write(make_refusal(status))
        self.transport.loseWriteConnection()
        self.callLater(LINGER_SECONDS, self.transport.abortConnection)

    def loseConnection(self) -> None:  # noqa: N802
        super().loseConnection()
        if self.transport.connected:
            self.flow.closing()

    def pauseProducing(self) -> None:  # noqa: N802
        self.flow.pauseProducing()
        super().pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802
        super().resumeProducing()
        self.flow.resumeProducing()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self.flow.stopProducing()
        super().connectionLost(reason)
