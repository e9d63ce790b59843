"""Run the stand-in for the Messages API alone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agentweb.emulator import server
from agentweb.management.commands.serve import port_number


class Command(BaseCommand):
    help = "Serve the strict stand-in for the Messages API on 127.0.0.1 until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=port_number, default=8100)
        parser.add_argument(
            "--pace", type=float, default=0.0, help="seconds between two pieces of an answer"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        running = server.start(options["port"], pace=options["pace"])
        self.stdout.write(f"The emulator is running at {running.url}  (Ctrl-C stops it)")
        self.stdout.flush()
        try:
            running.join()
        except KeyboardInterrupt:
            running.stop()
