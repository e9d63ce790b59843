"""Daphne's server with our own connections, backpressure on responses, and a clean shutdown.

On shutdown it first lets turns end while everything still works. Then it accepts no new
connections, closes the sockets with a code that makes pages reconnect, and waits a moment for
requests in progress.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from daphne.server import Server
from twisted.internet import defer

from agentweb.edge import channel
from agentweb.edge.descriptors import Descriptors
from agentweb.edge.event_loops import install_reactor
from agentweb.edge.sockets import MOST_FRAME, Socket
from agentweb.edge.watchdog import Watchdog
from conversations.conf import conf

logger = logging.getLogger("agentweb.edge")
_Server: Any = Server
#: Send buffer of one connection in the kernel, which doubles the number.
SEND_BUFFER = 131_072
#: Connections that wait to be accepted.
BACKLOG = 1_024
#: Types of messages that are delayed until the peer has taken the earlier ones.
_HEAVY = {"websocket.send", "http.response.body"}
#: Seconds that connections have to end once the turns are drained.
END_SECONDS = 3.0


class EdgeServer(_Server):  # type: ignore[misc]
    def __init__(
        self,
        application: Any,
        address: str,
        *,
        ready: Callable[[], None],
        drain: Callable[[], Awaitable[None]],
    ) -> None:
        install_reactor()
        super().__init__(
            application,
            endpoints=[f"{address}:backlog={BACKLOG}"],
            ready_callable=self._begin,
            server_name="agentweb",
            websocket_handshake_timeout=channel.HEAD_SECONDS,
            websocket_max_message_size=MOST_FRAME,
            websocket_max_frame_size=MOST_FRAME,
        )
        self.descriptors = Descriptors()
        self._ready, self._drain = ready, drain
        self._ports: list[Any] = []
        self._watchdog: Watchdog | None = None

    def _begin(self) -> None:
        self.http_factory.protocol = channel.Channel
        self.http_factory.timeOut = channel.HEAD_SECONDS
        self.ws_factory.protocol = Socket
        self.ws_factory.setProtocolOptions(closeHandshakeTimeout=END_SECONDS, allowNullOrigin=True)
        self._ready()

    def watch(self) -> None:
        """Begin to name what holds the loop; start-up may hold it."""
        self._watchdog = Watchdog(asyncio.get_event_loop(), conf.loop_block_ms)
        self._watchdog.start()

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        self._ports.append(port)
        # Accepted connections inherit it from the listening socket.
        port.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        inbox = protocol.inbox()
        # An application that prefers to drop a message rather than wait looks at the flow itself.
        scope |= {"asgi": {"version": "3.0"}, "flow": protocol.flow}
        running = self.application(scope, inbox.get, partial(self.handle_reply, protocol))
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(running)
        return inbox

    def forget(self, protocol: Any) -> None:
        """End the application of a socket whose handshake was never completed."""
        if (application := self.connections[protocol].get("application_instance")) is not None:
            application.cancel()

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        # Closing does not wait: `Flow.closing` watches the data that is left.
        if protocol.flow.is_blocked and message["type"] in _HEAVY:
            await protocol.flow.drained()
        if message["type"] == "websocket.send":
            # The socket itself knows whether it is open.
            protocol.handle_reply(message)
        else:
            await super().handle_reply(protocol, message)

    def kill_all_applications(self) -> Any:
        """Shut down in order; the reactor waits for it."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._end()))

    async def _end(self) -> None:
        try:
            await self._drain()
        except Exception:
            logger.exception("turns could not be drained")
        for port in self._ports:
            port.stopListening()
        for protocol in list(self.connections):
            if isinstance(protocol, Socket):
                protocol.leave()
        running = [
            each["application_instance"]
            for each in self.connections.values()
            if "application_instance" in each
        ]
        if running:
            _, late = await asyncio.wait(running, timeout=END_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._watchdog is not None:
            self._watchdog.stop()
