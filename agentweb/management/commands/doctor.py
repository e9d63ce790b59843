"""Say what is wrong with this installation, and what to change."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agentweb.doctor import database, host, model, scaled_out, site_settings, stored_data
from agentweb.doctor.report_lines import Line, exit_code, run_check


class Command(BaseCommand):
    help = (
        "Look at everything that can be wrong with an installation, each line with what to change;"
        " exit code 1 when something failed."
    )
    # The command reports the checks itself, so they must not stop it.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--online", action="store_true", help="ask the API too; costs nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        checks = [
            *host.CHECKS,
            *site_settings.CHECKS,
            *database.CHECKS,
            *scaled_out.CHECKS,
            *model.CHECKS,
        ]
        checks += [*stored_data.CHECKS, *([model.check_online] if options["online"] else [])]
        lines: list[Line] = []
        for check in checks:
            for line in run_check(check):
                lines.append(line)
                if not options["json"]:
                    self.stdout.write(str(line))
        code = exit_code(lines)
        counts = {state: sum(line.state == state for line in lines) for state in STATES}
        if options["json"]:
            self.stdout.write(json.dumps({**counts, "lines": [line.data() for line in lines]}))
        else:
            self.stdout.write(", ".join(f"{count} {state}" for state, count in counts.items()))
        if code:
            sys.exit(code)


STATES = ("ok", "warn", "failed")
