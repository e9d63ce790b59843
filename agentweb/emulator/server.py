"""Run an ASGI app on an address of this machine, on a thread and an event loop of its own.

The protocol is uvicorn's on h11 (`http_connection`). Connections are accepted here and not by
`uvicorn.Server`, which polls ten times a second for its end and needs 0.2 s to stop.

Processor time of the emulator's process (2 cores, Python 3.11, median of 5 runs), beside that of
an HTTP/1.1 protocol written only for this package, of 390 lines:

    per 1,000 deltas, 40 streams of 40 deltas a second   53 ms, before 47
    per 1,000 deltas, 40 streams with 12 ms between      29 ms, before 28
    per 1,000 deltas that travel together                1.0 ms, before 0.9
    per 1,000 answers of eight words                     383 ms, before 278

httptools in place of h11 gives the earlier figures, but nothing else needs that package.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from uvicorn.config import Config
from uvicorn.server import ServerState

from agentweb.emulator.app import DEMO_PACE, EmulatorApp, create_app
from agentweb.emulator.asgi import App
from agentweb.emulator.http_connection import HttpConnection
from agentweb.emulator.recording import Recorder, Replayer
from agentweb.emulator.state import Emulator
from agentweb.emulator.trusted_hosts import only_local

_MAX_HEAD = 65_536
#: Longer than clients keep an idle connection, so that no request hits a connection that closes.
_KEEP_ALIVE_SECONDS = 75


class Server:
    """A running server; `stop` ends it and closes all connections."""

    def __init__(self, app: App, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.app = app
        #: What receives the requests: the app, or a wrapper around it.
        self.front: App = app
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=1024)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._state = ServerState()
        self._thread = threading.Thread(target=self._run, name=f"http-{self.port}", daemon=True)

    @property
    def connections(self) -> int:
        """Return the number of connected clients."""
        return len(self._state.connections)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(timeout=5)

    def join(self) -> None:
        """Wait until the server is stopped."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        config = _configure(only_local(self.front, self.host))
        server = await self._loop.create_server(
            lambda: HttpConnection(config, self._state, {}), sock=self._socket
        )
        await self._stopping.wait()
        server.close()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class EmulatorServer(Server):
    app: EmulatorApp

    @property
    def emulator(self) -> Emulator:
        """Return the emulator: its bills, log and cache."""
        return self.app.emulator


def start(
    port: int = 0,
    *,
    app: EmulatorApp | None = None,
    host: str = "127.0.0.1",
    pace: float = DEMO_PACE,
    recording: Path | None = None,
    replayed: Path | None = None,
    is_strict: bool = False,
    **settings: Any,
) -> EmulatorServer:
    """Serve the emulator; port 0 picks a free one, settings are those of `create_app`.

    The default pace is for people who watch: tests pass `pace=0`. Exchanges are appended to the
    file `recording`; requests of the file `replayed` are answered from it (strict: all others are
    refused). Raises RecordingError, OSError.
    """
    served = app or create_app(pace=pace, **settings)
    front: App = served
    if replayed is not None:
        front = Replayer(front, replayed, is_strict=is_strict)
    if recording is not None:
        front = Recorder(front, recording)
    running = EmulatorServer(served, host=host, port=port)
    running.front = front
    return running.start()


def _configure(app: App) -> Config:
    """Return uvicorn's configuration; it leaves the process's logging unchanged."""
    config = Config(
        app,
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=_MAX_HEAD,
    )
    config.load()
    return config
