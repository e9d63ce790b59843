"""Shows which chats the retention rules would take now; the sweep of a running site does it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from conversations.library.retention import preview_rules


class Command(BaseCommand):
    help = (
        "List the chats that the retention rules would move to the trash or erase now, with the"
        " rule and the counts. Nothing is changed: a running site applies the rules within"
        " ten minutes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--limit", type=int, default=50, help="chats to list; all are counted")

    def handle(self, *args: Any, **options: Any) -> None:
        found = preview_rules(most=max(0, options["limit"]))
        wide = max((len(chat.person) for chat in found.chats), default=0)
        for chat in found.chats:
            at = timezone.localtime(chat.last_message)
            where = "erase" if chat.is_erased else "trash"
            self.stdout.write(
                f"{where}  {chat.person:{wide}}  {chat.chat}  last message {at:%Y-%m-%d}"
                f"  {chat.rule}"
            )
        more = found.trashed + found.erased - len(found.chats)
        if more > 0:
            self.stdout.write(f"and {more} more")
        self.stdout.write(
            f"{found.trashed} to the trash, {found.erased} erased, of {found.people} people;"
            f" {found.held} kept by a legal hold"
        )
