"""Run the stand-in for the Messages API alone, compare it with one, or measure what it gives."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from agentweb import emulator
from agentweb.bench.emulator_throughput import Measured, Rate, measure
from agentweb.emulator import add_options, compare_from, start_from


class Command(BaseCommand):
    help = "Serve the strict stand-in for the Messages API until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser, port=8100, pace=0.0)
        parser.add_argument(
            "--bench", action="store_true", help="measure it beside what the application can take"
        )
        parser.add_argument("--streams", type=int, default=40, metavar="N", help="with --bench")
        parser.add_argument("--at-once", type=int, default=4, metavar="N", help="with --bench")
        parser.add_argument("--json", action="store_true", help="with --bench: one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["bench"]:
            self._bench(options)
            return
        try:
            if options["against"]:
                sys.exit(0 if compare_from(options, self.stdout.write) else 1)
            running = start_from(options)
        except emulator.CommandError as error:
            raise CommandError(str(error), returncode=2) from error
        self.stdout.write(f"The emulator is running at {running.url}  (Ctrl-C stops it)")
        self.stdout.flush()
        try:
            running.join()
        except KeyboardInterrupt:
            running.stop()

    def _bench(self, options: dict[str, Any]) -> None:
        if options["streams"] < 1 or options["at_once"] < 1:
            raise CommandError("--streams and --at-once must be at least 1", returncode=2)
        found = measure(streams=options["streams"], at_once=options["at_once"])
        if options["json"]:
            self.stdout.write(json.dumps(found.data()))
            return
        self._line("the emulator gives", found.emulator)
        self._line("the application's client and parser take", found.application)
        self.stdout.write(_verdict(found))

    def _line(self, what: str, rate: Rate) -> None:
        self.stdout.write(
            f"{what}: {rate.events_per_second:,.0f} events a second"
            f" ({rate.microseconds_per_event:.2f} microseconds of one processor each;"
            f" {rate.streams} streams, {rate.events:,} events, {rate.seconds:.2f} s)"
        )


def _verdict(found: Measured) -> str:
    return (
        f"by processor time the emulator could feed {found.processor_ratio:.1f} such applications,"
        f" by the clock {found.ratio:.1f} on a machine both share"
    )
