"""Run the job search as a demonstration: a data folder of its own, a small job site, a played user.

Settings are read when Python starts, so the command restarts itself with its own data folder; the
site's data is not touched.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandParser

from agentweb.demo import job_site, play
from agentweb.demo.workspace import PROMPTS, QUESTIONS
from agentweb.management.commands import serve
from agentweb.serving.server_process import run_server

#: Set in the restarted process.
_MARK = "AGENTWEB_DEMO"


class Command(serve.Command):
    help = "Play the job search in a data folder of its own, to be watched in a browser."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--site-port", type=serve.port_number, default=8123)

    def handle(self, *args: Any, **options: Any) -> None:
        if not os.environ.get(_MARK):
            _start_again()
        self.site = job_site.start_site(options["site_port"])
        settings.AGENTWEB_FETCH_PRIVATE_HOSTS = (f"127.0.0.1:{options['site_port']}",)
        try:
            super().handle(*args, **options)
        finally:
            self.site.stop()

    def serve(self, host: str, port: int, *, opens: bool) -> None:
        user_id, password = play.prepare(job_site.make_list_url(self.site.url))
        tasks: list[asyncio.Task[None]] = []

        def show_site(url: str) -> None:
            self.greet(f"{url}", None, opens=opens)
            self.stdout.write(f"Log in as {play.NAME} with the password {password}")
            watch = play.play(
                user_id, PROMPTS + QUESTIONS, lambda path: self._show_address(url + path)
            )
            tasks.append(asyncio.ensure_future(watch))

        run_server(host, port, started=show_site)

    def _show_address(self, address: str) -> None:
        self.stdout.write(f"Watch the conversation at {address}")
        self.stdout.flush()


def _start_again() -> NoReturn:
    folder = settings.DATA_DIR / "demo"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = os.environ | {_MARK: "1", "AGENTWEB_DATA_DIR": str(folder)}
    environment.pop("DATABASE_URL", None)
    # The preset under which every step of the engine happens within minutes, and a model whose
    # prices rise above 100,000 tokens, so that a summary pays.
    environment.setdefault("AGENTWEB_POLICY", "classic")
    environment.setdefault("AGENTWEB_MODEL", "claude-haiku-5-5")
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606
