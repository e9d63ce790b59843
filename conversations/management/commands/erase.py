"""Erases conversations whose time in the trash is over, as a running server does."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.models import User


class Command(BaseCommand):
    help = (
        "Erase conversations that have been in the trash for long enough, or all of one user's, up"
        " to 1,000 a run; files and mail accounts go with *Delete* on a person's own data page."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--everything-of", metavar="NAME", help="erase all of this user's, now")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["everything_of"]
        if name is None:
            self.stdout.write(f"{erase_due_conversations()} erased")
            return
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no user {name!r}", returncode=2)
        running = delete_everything(owner_id=user.pk)
        count = erase_due_conversations(owner_id=user.pk)
        left = f", {len(running)} still answering, to be erased when done" if running else ""
        self.stdout.write(f"{count} erased{left}")
