"""Exports conversations as JSON lines, Markdown or HTML; `import_conversation` reads the JSON."""

from __future__ import annotations

import os
import sys
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.models import Conversation, User
from conversations.transfer.exports import EXPORT_FORMATS, list_exported


class Command(BaseCommand):
    help = "Write a conversation, or all of a user's, to the standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", nargs="?", help="its id as in its address")
        parser.add_argument("--user", metavar="NAME", help="all conversations of this user")
        parser.add_argument("--format", choices=sorted(EXPORT_FORMATS), default="json")
        parser.add_argument("--events", action="store_true", help="with every change of context")

    def handle(self, *args: Any, **options: Any) -> None:
        if (options["conversation"] is None) == (options["user"] is None):
            raise CommandError("give the id of a conversation, or --user", returncode=2)
        write = EXPORT_FORMATS[options["format"]].write
        wanted = self._wanted(options["conversation"], options["user"])
        try:
            for found in wanted:
                for piece in write(found, with_events=options["events"]):
                    self.stdout.write(piece, ending="")
            self.stdout.flush()
        except OSError as error:
            # Else Python would try again to write what is left, and fail, as it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise CommandError(f"the export is not whole: {error.strerror}") from error

    def _wanted(self, name: str | None, user_name: str | None) -> list[Conversation]:
        if user_name is not None:
            user = User.objects.filter(username=user_name).first()
            if user is None:
                raise CommandError(f"there is no user {user_name!r}", returncode=2)
            return list(list_exported(user))
        try:
            rows = Conversation.objects.filter(public_id=UUID(name or ""))
        except ValueError:
            raise CommandError(f"{name!r} is no id of a conversation", returncode=2) from None
        found = list(rows)
        if not found:
            raise CommandError(f"there is no conversation {name}", returncode=2)
        return found
