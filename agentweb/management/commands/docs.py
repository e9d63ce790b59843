"""Write the generated tables of the READMEs, or compare them with the code."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from agentweb.management.readme_tables import TABLES


class Command(BaseCommand):
    help = (
        "Writes the tables of READMEs that are made from code: packages, settings, commands. With"
        " --check it changes nothing; exit code 1 names the tables that are not current."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="compare, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        old = [table for table in TABLES if not table.is_current()]
        if options["check"] and old:
            names = ", ".join(f"{table.file} ({table.name})" for table in old)
            raise CommandError(f"not current: {names}; run `manage.py docs`")
        for table in old:
            if not table.write():
                raise CommandError(f"{table.file} has no marks <!-- {table.name} -->")
            self.stdout.write(f"wrote {table.file} ({table.name})")
