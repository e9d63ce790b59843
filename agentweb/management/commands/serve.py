"""Run agentweb: database, built-in emulator where no key is set, web server, turns."""

from __future__ import annotations

import argparse
import webbrowser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from agentweb.serving.checks import START_CHECKS
from agentweb.serving.heartbeat import give_signs
from agentweb.serving.server_process import lock_data_folder, run_server
from agentweb.serving.startup import (
    demand_fit_address,
    demand_guards,
    demand_room,
    demand_sound,
    is_loopback,
    list_missing_models,
)
from conversations.audit.anchors import anchor_at_shutdown
from conversations.conf import conf
from conversations.web.setup import read_setup_token


def port_number(text: str) -> int:
    """Parse a port; argparse shows the error."""
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text}: a port is a number from 1 to 65535")
    return int(text)


def find_public_url(url: str) -> str:
    """Return where browsers reach the site: behind a proxy with TLS not where it listens."""
    if not settings.HTTPS:
        return url
    names = [name for name in settings.ALLOWED_HOSTS if not is_loopback(name.strip("[]"))]
    origins = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    origins += [f"https://{name}" for name in names if not name.startswith((".", "*"))]
    return f"{origins[0].rstrip('/')}/" if origins else url


class Command(BaseCommand):
    help = "Run the site, with the turns inside: prepare the database, serve until Ctrl-C."
    requires_system_checks = START_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=port_number, default=8000, help="port to listen on")
        parser.add_argument("--open", action="store_true", help="open the site in a browser")

    def handle(self, *args: Any, **options: Any) -> None:
        demand_fit_address(options["host"])
        with lock_data_folder():
            self.prepare()
            emulator = self.emulate()
            try:
                self.serve(options["host"], options["port"], opens=options["open"])
                anchor_at_shutdown()
            finally:
                if emulator is not None:
                    emulator.stop()
        self.stdout.write("Stopped.")

    def prepare(self) -> None:
        """Migrate the database; refuse one that cannot keep the log."""
        demand_sound()
        call_command("migrate", interactive=False, verbosity=0)
        demand_guards()
        demand_room()
        for setting, name in list_missing_models():
            # Somebody may enable it meanwhile, so this is no reason not to serve.
            self.stderr.write(f"{setting}: {name} is not an enabled model of the catalogue")

    def emulate(self) -> Any:
        """Start the emulator if neither a key nor another address is set."""
        if settings.ANTHROPIC_API_KEY or settings.ANTHROPIC_BASE_URL:
            return None
        from agentweb.emulator import start

        emulator = start(pace=conf.emulator_delay_ms / 1000)
        settings.ANTHROPIC_BASE_URL = emulator.url
        self.stdout.write("No ANTHROPIC_API_KEY: answers come from the built-in emulator.")
        return emulator

    def serve(self, host: str, port: int, *, opens: bool) -> None:
        token = read_setup_token()
        with give_signs("web"):
            run_server(
                host,
                port,
                started=lambda url: self.greet(url, token, opens=opens),
            )

    def greet(self, url: str, token: str | None, *, opens: bool) -> None:
        self.stdout.write(f"agentweb is running at {url}  (Ctrl-C stops it)")
        url = find_public_url(url)
        if token is not None:
            self.stdout.write(f"Create the first administrator here, once: {url}setup/{token}/")
        self.stdout.flush()
        if opens:
            webbrowser.open(f"{url}setup/{token}/" if token else url)
