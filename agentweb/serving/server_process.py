"""The server process: Daphne with the supervisor of turns inside, drained on shutdown.

Daphne has no lifespan events, so turns are started when its reactor runs and drained before it
shuts down; otherwise a shutdown would cut off every answer.
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

from agentweb import env
from agentweb.serving import frozen_memory


def run_server(host: str, port: int, *, started: Callable[[str], None]) -> None:
    """Serve until a signal; `started` is called with the site's URL once it answers."""
    from channels.routing import get_default_application

    from agentweb.edge.http_server import EdgeServer
    from conversations.conf import conf

    if conf.run_turns_in == "web":
        import conversations.claude.client  # noqa: F401  (imported now: its import takes seconds)

    _demand_free(host, port)
    frozen_memory.limit_arenas()

    def begin() -> None:
        server.watch()
        started(format_site_url(host, port))

    process = _Process(begin)
    address = f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"
    server = EdgeServer(
        get_default_application(), address, ready=process.ready, drain=process.drain
    )
    server.run()
    if process.error is not None:
        raise CommandError(f"the server could not start: {process.error}")


class _Process:
    """Start turns when the reactor runs, and drain them before it ends."""

    def __init__(self, started: Callable[[], None]) -> None:
        self._started = started
        self._reactor: Any = None
        self.error: BaseException | None = None

    def ready(self) -> None:
        from twisted.internet import reactor

        self._reactor = reactor  # the server's
        self._reactor.callWhenRunning(self._begin)

    def _begin(self) -> None:
        from conversations.conf import conf
        from conversations.runtime.process import process

        starting = asyncio.ensure_future(process.start(runs_turns=conf.run_turns_in == "web"))
        starting.add_done_callback(self._finish_start)

    def _finish_start(self, task: asyncio.Future[None]) -> None:
        self.error = task.exception()
        if self.error is None:
            frozen_memory.freeze_memory()
            self._started()
        else:
            self._reactor.stop()

    async def drain(self) -> None:
        from conversations.runtime.process import process

        await process.drain()


def format_site_url(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def _demand_free(host: str, port: int) -> None:
    """Report an address that cannot be listened on before anything else starts."""
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
def lock_data_folder() -> Iterator[None]:
    """Hold the lock of the data folder: only one server may use the embedded database."""
    folder = Path(settings.DATA_DIR)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = (folder / "serve.lock").open("w") if connection.vendor == "sqlite" else None
    except OSError as error:
        raise CommandError(env.describe_unwritable(folder, error)) from error
    if held is None:
        yield
        return
    with held as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(
                f"another agentweb already serves {settings.DATA_DIR}; stop it, or set"
                " AGENTWEB_DATA_DIR to another folder, or DATABASE_URL to PostgreSQL"
            ) from None
        yield
