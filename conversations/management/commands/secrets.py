"""Stored secrets after a change of keys: which are closed, and all of them under the new key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from conversations.management.arguments import find_person
from conversations.toolbox.sealed_secrets import list_closed_secrets, rotate_secrets


class Command(BaseCommand):
    help = (
        "Name the stored secrets (mail accounts, MCP servers, second factors) that no key opens"
        " (exit code 1)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action")
        actions.add_parser("check", help="name those that no key opens (the default)")
        rotate = actions.add_parser("rotate", help="seal all of them with the first key")
        rotate.add_argument("--by", required=True, metavar="NAME", help="whose decision it is")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "rotate":
            done = rotate_secrets(actor=find_person(options["by"]))
            self.stdout.write(f"{done.sealed} sealed anew, {done.current} were already.")
            closed = list(done.closed)
        else:
            closed = list_closed_secrets()
        for name in closed:
            self.stdout.write(f"cannot be opened: {name}")
        if closed:
            raise SystemExit(1)
        if options["action"] == "rotate":
            self.stdout.write("Former keys are needed no longer for them.")
        else:
            self.stdout.write("All stored secrets can be opened.")
