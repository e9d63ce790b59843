"""Anchors the chains now; servers and the scheduler do it every hour."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.audit.anchor_file import AnchorError, find_anchor_path
from conversations.audit.anchors import anchor_heads, record_restore, start_new_file


class Command(BaseCommand):
    help = (
        "Write the ends of all chains that have grown into the anchor file now; a server does so"
        " every hour."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        how = parser.add_mutually_exclusive_group()
        how.add_argument(
            "--new-file", metavar="REASON", help="begin a new file; the old one is lost"
        )
        how.add_argument(
            "--restored",
            metavar="REASON",
            help="a backup was put back: what was anchored after it counts no more",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["new_file"] is not None:
                count = start_new_file(reason=options["new_file"])
            elif options["restored"] is not None:
                count = record_restore(reason=options["restored"])
            else:
                count = anchor_heads()
        except AnchorError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} chains anchored in {find_anchor_path()}")
