"""Runs an ASGI app on 127.0.0.1 inside this process, on a thread and an event loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import TracebackType
from typing import Any, Self

from agentweb.emulator.app import DEMO_PACE, EmulatorApp, create_app
from agentweb.emulator.asgi import App
from agentweb.emulator.hosts import only_local
from agentweb.emulator.http1 import Connection
from agentweb.emulator.state import Emulator


class Server:
    """A running server; `stop` ends it and every connection it holds."""

    def __init__(self, app: App, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.app = app
        self._socket = socket.create_server((host, port), backlog=1024)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._connections: set[Connection] = set()
        self._thread = threading.Thread(target=self._run, name=f"http-{self.port}", daemon=True)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(timeout=5)

    def join(self) -> None:
        """Wait until somebody stops it."""
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
        app = only_local(self.app, self.host)
        server = await self._loop.create_server(
            lambda: Connection(app, self._connections), sock=self._socket
        )
        await self._stopping.wait()
        server.close()
        tasks = [connection.task for connection in self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class EmulatorServer(Server):
    app: EmulatorApp

    @property
    def emulator(self) -> Emulator:
        """Its bills, log and cache."""
        return self.app.emulator


def start(
    port: int = 0,
    *,
    app: EmulatorApp | None = None,
    host: str = "127.0.0.1",
    pace: float = DEMO_PACE,
    **settings: Any,
) -> EmulatorServer:
    """Serve the emulator; port 0 picks a free one, settings are those of `create_app`.

    The pace is for people to watch: tests pass `pace=0`.
    """
    return EmulatorServer(app or create_app(pace=pace, **settings), host=host, port=port).start()
