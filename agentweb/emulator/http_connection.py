"""uvicorn's HTTP/1.1 connection, and the broken responses that no proper server sends.

If an app returns before its last body message the connection is closed: this is how a stream is
cut. An app may also send two messages that ASGI does not have: `emulator.reset` closes with a TCP
reset, and after `emulator.unbounded` writes do not wait for the peer.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from agentweb.emulator.asgi import App, Message, Receive, Scope, Send

#: More than any answer; uvloop takes no more than fits a C int.
_UNBOUNDED = (1 << 31) - 1
_LINGER_NONE = struct.pack("ii", 1, 0)


class HttpConnection(H11Protocol):
    """One client connection, for requests one after the other."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._application = cast("App", self.app)
        self.app = cast("Any", self._respond)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # asyncio sets TCP_NODELAY only if the listener was made with an explicit protocol number.
        # Without it the body of a response waits for the acknowledgement of its head, some 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_complete = False

        async def send_or_break(message: Message) -> None:
            nonlocal is_complete
            match message["type"]:
                case "emulator.reset":
                    self._reset()
                case "emulator.unbounded":
                    self.transport.set_write_buffer_limits(high=_UNBOUNDED)
                case kind:
                    await send(message)
                    is_complete = kind == "http.response.body" and not message.get("more_body")

        try:
            await self._application(scope, receive, send_or_break)
        except asyncio.CancelledError:
            self._cut()  # the server is stopping
            return
        except Exception:
            if not self.cycle.disconnected:
                raise
        if not is_complete:
            self._cut()

    def _cut(self) -> None:
        """Close without the end of the response; uvicorn then adds nothing to it."""
        self.cycle.disconnected = True
        self.transport.close()

    def _reset(self) -> None:
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self.transport.abort()
