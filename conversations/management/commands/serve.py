"""Run agentweb: database, built-in emulator where no key is set, web server, turns."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import webbrowser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection

from conversations.conf import conf
from conversations.services.guards import missing_guards
from conversations.setup import setup_token

#: Seconds that running turns are given to end when the server is told to stop.
DRAIN_SECONDS = 10
FRAME_BYTES = 65_536


class Command(BaseCommand):
    help = "Run agentweb: prepare the database and serve the site until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")
        parser.add_argument("--open", action="store_true", help="open the site in a browser")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        if not 0 < port < 65_536:
            raise CommandError(f"--port {port}: a port is a number from 1 to 65535")
        with _only_one():
            self._prepare()
            emulator = self._emulate()
            try:
                self._serve(host, port, opens=options["open"])
            finally:
                if emulator is not None:
                    emulator.stop()

    def _prepare(self) -> None:
        call_command("check", "--fail-level", "ERROR", verbosity=0)
        call_command("migrate", interactive=False, verbosity=0)
        missing = missing_guards()
        if missing:
            raise CommandError(f"append-only triggers are missing on: {', '.join(missing)}")

    def _emulate(self) -> Any:
        """Start the emulator when no key is set and no other address is given."""
        if settings.ANTHROPIC_API_KEY or settings.ANTHROPIC_BASE_URL:
            return None
        from agentweb.emulator import server

        emulator = server.start(pace=conf.emulator_delay_ms / 1000)
        settings.ANTHROPIC_BASE_URL = emulator.url
        self.stdout.write("No ANTHROPIC_API_KEY: answers come from the built-in emulator.")
        return emulator

    def _serve(self, host: str, port: int, *, opens: bool) -> None:
        import anthropic  # noqa: F401  (two seconds of CPU that no first request should pay)
        from daphne.server import Server
        from twisted.internet import defer
        from twisted.internet import reactor as installed

        from agentweb.asgi import application
        from conversations.turns import supervisor

        reactor: Any = installed  # its type is that of whichever loop is installed
        failed: list[BaseException] = []

        def ready() -> None:
            reactor.callWhenRunning(begin)
            reactor.addSystemEventTrigger(
                "before",
                "shutdown",
                lambda: defer.Deferred.fromFuture(
                    asyncio.ensure_future(supervisor.drain(DRAIN_SECONDS))
                ),
            )

        def begin() -> None:
            task = asyncio.ensure_future(supervisor.start(is_alone=connection.vendor == "sqlite"))
            task.add_done_callback(started)

        def started(task: asyncio.Future[None]) -> None:
            if task.exception() is not None:
                failed.append(task.exception() or RuntimeError())
                reactor.stop()
                return
            self._greet(host, port, opens=opens)

        Server(
            application,
            endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
            ready_callable=ready,
            server_name="agentweb",
            websocket_handshake_timeout=10,
        ).run()
        if failed:
            raise CommandError(f"the server could not start: {failed[0]}")
        self.stdout.write("Stopped.")

    def _greet(self, host: str, port: int, *, opens: bool) -> None:
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
        url = f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
        self.stdout.write(f"agentweb is running at {url}  (Ctrl-C stops it)")
        token = setup_token()
        if token is not None:
            self.stdout.write(f"Create the first administrator here, once: {url}setup/{token}/")
        self.stdout.flush()
        if opens:
            webbrowser.open(f"{url}setup/{token}/" if token else url)


@contextlib.contextmanager
def _only_one() -> Any:
    """Hold the data folder's lock: the embedded database is for one server."""
    if connection.vendor != "sqlite":
        yield
        return
    path = Path(settings.DATA_DIR) / "serve.lock"
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(
                f"another agentweb already serves {settings.DATA_DIR}; stop it, or set"
                " AGENTWEB_DATA_DIR to another folder, or DATABASE_URL to PostgreSQL"
            ) from None
        yield
