"""The server process: Daphne with the supervisor of turns inside, drained when it is told to stop.

Daphne has no lifespan events, so turns are started when its reactor runs and drained before it
shuts down; without that a stop would cut every answer off.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.db import connection

#: Seconds that running turns are given to end when the server is told to stop.
DRAIN_SECONDS = 10
#: Bytes of the longest frame or message that a socket takes from a browser.
MOST_FRAME = 131_072


def run(host: str, port: int, *, is_alone: bool, started: Callable[[str], None]) -> None:
    """Serve until a signal; `started` is called with the site's URL once it answers."""
    from daphne.server import Server

    import conversations.claude  # noqa: F401  (two seconds of CPU no first request should pay)
    from agentweb.asgi import application

    _demand_free(host, port)
    process = _Process(lambda: started(site_url(host, port)), is_alone=is_alone)

    def ready() -> None:
        server.ws_factory.protocol = _one_sided()
        process.ready()

    server = Server(
        application,
        endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
        ready_callable=ready,
        server_name="agentweb",
        websocket_handshake_timeout=10,
        # The page says next to nothing by its socket.
        websocket_max_message_size=MOST_FRAME,
        websocket_max_frame_size=MOST_FRAME,
    )
    server.run()
    if process.error is not None:
        raise CommandError(f"the server could not start: {process.error}")


def _one_sided() -> type[Any]:
    """Make the protocol of a socket whose limit is for what comes in, not for a long turn."""
    from daphne.ws_protocol import WebSocketProtocol

    untyped: Any = WebSocketProtocol

    class Protocol(untyped):  # type: ignore[misc]
        maxMessagePayloadSize: int  # noqa: N815

        def sendMessage(self, *args: Any, **options: Any) -> None:  # noqa: N802
            most, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
            try:
                super().sendMessage(*args, **options)
            finally:
                self.maxMessagePayloadSize = most

    return Protocol


class _Process:
    """The reactor's life: turns begin when it runs and are drained before it ends."""

    def __init__(self, started: Callable[[], None], *, is_alone: bool) -> None:
        from twisted.internet import reactor

        self._reactor: Any = reactor  # its type is that of whichever loop is installed
        self._started, self._is_alone = started, is_alone
        self.error: BaseException | None = None

    def ready(self) -> None:
        self._reactor.callWhenRunning(self._begin)
        self._reactor.addSystemEventTrigger("before", "shutdown", self._drain)

    def _begin(self) -> None:
        from conversations.turns import supervisor

        starting = asyncio.ensure_future(supervisor.start(is_alone=self._is_alone))
        starting.add_done_callback(self._begun)

    def _begun(self, task: asyncio.Future[None]) -> None:
        self.error = task.exception()
        if self.error is None:
            self._started()
        else:
            self._reactor.stop()

    def _drain(self) -> Any:
        from twisted.internet import defer

        from conversations.turns import supervisor

        return defer.Deferred.fromFuture(asyncio.ensure_future(supervisor.drain(DRAIN_SECONDS)))


def site_url(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def _demand_free(host: str, port: int) -> None:
    """Say plainly that an address cannot be listened on, before anything else starts."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise CommandError(
            f"cannot listen on {host} port {port}: {error.strerror or error};"
            " choose another with --port"
        ) from error


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold the data folder's lock: the embedded database is for one server."""
    Path(settings.DATA_DIR).mkdir(mode=0o700, parents=True, exist_ok=True)
    if connection.vendor != "sqlite":
        yield
        return
    with (Path(settings.DATA_DIR) / "serve.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(
                f"another agentweb already serves {settings.DATA_DIR}; stop it, or set"
                " AGENTWEB_DATA_DIR to another folder, or DATABASE_URL to PostgreSQL"
            ) from None
        yield
