"""One WebSocket: limits on what comes in, backpressure on what goes out, and close codes.

A page sends almost nothing over its socket, so the limits are low. A client that exceeds them is
closed with the reason (1008, 1009, 1003, 1002, 1007) and not read any further, before messages
queue up for the application. A peer that does not read is closed with 4008; a server that stops
closes with 1012. An application that cannot work just now closes with 1013; in a handshake that is
HTTP 503.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any

from daphne.ws_protocol import WebSocketProtocol

from agentweb.edge.error_responses import make_refusal
from agentweb.edge.flow import Flow

_WebSocketProtocol: Any = WebSocketProtocol
#: Most bytes of a frame or message that a socket accepts from a browser.
MOST_FRAME = 131_072
#: Seconds of a period; most frames, of every kind, and bytes within one.
PERIOD, MOST_FRAMES, MOST_BYTES = 5.0, 400, 1_048_576
#: Most fragments of one message.
MOST_PARTS = 64
#: Most messages that wait for a busy application.
MOST_WAITING = 256
#: Seconds after which a connection is cut if the peer takes none of the data.
PATIENCE = 5.0
#: Codes of RFC 6455, and our own for a peer that does not read.
NORMAL, NOT_TEXT, TOO_MUCH, TOO_BIG, RESTARTING, NOT_READ = 1000, 1003, 1008, 1009, 1012, 4008
#: The first byte of a text message of one frame.
_TEXT = 0x81
#: "Try again later", as IANA lists it.
AWAY = 1013


class Socket(_WebSocketProtocol):  # type: ignore[misc]
    flow: Flow
    maxMessagePayloadSize: int  # noqa: N815

    def __init__(self) -> None:
        super().__init__()
        self._period_began, self._frames, self._bytes, self._parts = 0.0, 0, 0, 0
        self._cut_with = 0
        self._is_away = False

    def connectionMade(self) -> None:  # noqa: N802 - Autobahn's names, here and below
        self.flow = Flow(self.transport, PATIENCE, self._cut)
        # Replaces the HTTP channel that this connection began with.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self.flow, True)
        super().connectionMade()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.failedByMe:
            return
        self._bytes += len(data)
        if self._bytes > MOST_BYTES and not self._renew_period():
            self._fail_connection(TOO_MUCH, "too much at once")
            return
        super().dataReceived(data)

    def onFrameBegin(self) -> None:  # noqa: N802
        super().onFrameBegin()
        self._frames += 1
        if self._frames > MOST_FRAMES and not self._renew_period() and not self.failedByMe:
            self._fail_connection(TOO_MUCH, "too many frames")

    def _renew_period(self) -> bool:
        """Begin a period if the last one is over; return whether it was."""
        now = time.monotonic()
        if now - self._period_began < PERIOD:
            return False
        self._period_began, self._frames, self._bytes = now, 1, 0
        return True

    def onMessageBegin(self, isBinary: bool) -> None:  # noqa: N802, N803
        super().onMessageBegin(isBinary)
        self._parts = 0
        if isBinary:
            self._fail_connection(NOT_TEXT, "text only")

    def onMessageFrameBegin(self, length: int) -> None:  # noqa: N802
        super().onMessageFrameBegin(length)
        self._parts += 1
        if self._parts > MOST_PARTS and not self.failedByMe:
            self._fail_connection(TOO_BIG, "too many parts")

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        if self.application_queue.qsize() < MOST_WAITING:
            super().onMessage(payload, isBinary)
        else:
            self._fail_connection(TOO_MUCH, "too many messages")

    def _fail_connection(self, code: int = TOO_MUCH, reason: str = "") -> None:
        """Send a close frame with the reason, read no more and discard what has arrived."""
        if self.state != self.STATE_OPEN:
            self.dropConnection(abort=True)
            return
        self.sendCloseFrame(code=code, reasonUtf8=reason.encode()[:123])
        self.failedByMe, self.data = True, b""
        self.transport.pauseProducing()

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:  # noqa: N802
        """Write at once what the kernel takes, and leave the rest to the transport.

        The transport would write it in the next turn of the loop, and begin and end to watch the
        connection for that; the library would compose a line of its log.
        """
        transport, taken = self.transport, 0
        if transport.connected and not (transport.dataBuffer or transport._tempDataLen):
            try:
                taken = transport.socket.send(data)
            except OSError:
                # The transport meets it again: it waits for a full buffer, or ends the connection.
                taken = 0
        if taken < len(data):
            transport.write(data[taken:])

    def sendHttpErrorResponse(self, code: int, reason: str, responseHeaders: Any = None) -> None:  # noqa: N802, N803
        self.sendData(make_refusal(503 if self._is_away else code))

    def handle_reply(self, message: Any) -> None:
        if message["type"] == "websocket.send" and self.state != self.STATE_CONNECTING:
            # A page that leaves during a send is not an error.
            if self.state == self.STATE_OPEN:
                self._send_text(message["text"].encode())
            return
        # The library refuses a handshake with 403 whatever the code.
        self._is_away = message.get("code") == AWAY
        super().handle_reply(message)

    def _send_text(self, payload: bytes) -> None:
        """Send a message as one frame, for whose head the library needs a dozen calls."""
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", _TEXT, size)
        elif size < 65_536:
            head = struct.pack("!BBH", _TEXT, 126, size)
        else:
            head = struct.pack("!BBQ", _TEXT, 127, size)
        self.sendData(head + payload)

    def serverClose(self, code: int | None = None) -> None:  # noqa: N802
        # The library reserves codes below 3000 and would raise; we send 1011 ourselves.
        self.sendCloseFrame(code=code or NORMAL)

    def leave(self) -> None:
        """Close with the code for a restart, so that the page reconnects by itself."""
        if self.state == self.STATE_OPEN:
            self.sendCloseFrame(code=RESTARTING)

    def _cut(self) -> None:
        self._cut_with = NOT_READ
        self.transport.abortConnection()

    def _closeConnection(self, abort: bool = False) -> None:  # noqa: N802
        super()._closeConnection(abort)
        if not abort and self.transport.connected:
            self.flow.closing()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self.flow.stopProducing()
        super().connectionLost(reason)
        # Its result is this connection.
        self.is_open = None

    def onClose(self, wasClean: bool, code: int, reason: str) -> None:  # noqa: N802, N803
        # Without a server the handshake failed before an application was called.
        if hasattr(self, "server"):
            super().onClose(wasClean, self._cut_with or code, reason)
            if hasattr(self, "handshake_deferred"):
                # Nobody waits for this response any more; under load others do.
                self.server.forget(self)

    def inbox(self) -> asyncio.Queue[Any]:
        return asyncio.Queue()
