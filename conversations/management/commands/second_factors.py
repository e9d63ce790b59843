"""Second factors that a person has lost."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from conversations.accounts.second_factors import list_second_factors, remove_lost_factors
from conversations.management.arguments import find_person


class Command(BaseCommand):
    help = "Say which second factors a person has; with --remove, remove them all, as when lost."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--remove", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        user = find_person(options["user"])
        found = list_second_factors(user)
        app = "an app, " if found.has_app else ""
        self.stdout.write(f"{app}{len(found.passkeys)} passkeys, {found.codes} recovery codes")
        if options["remove"]:
            count = remove_lost_factors(user=user)
            self.stdout.write("removed" if count else "there is nothing to remove")
