"""Erases conversations whose time in the trash is over, as a running server does, and proves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.library.erase_proof import prove_erasures, purge_erased
from conversations.log.legal_holds import list_held
from conversations.models import User
from conversations.operations.backup.archive import BackupError
from conversations.operations.leftovers.backups import find_newest_backup
from conversations.operations.leftovers.purge import PurgeError


class Command(BaseCommand):
    help = (
        "Erase conversations that have been in the trash for long enough, or all of one user's, up"
        " to 1,000 a run; files and mail accounts go with *Delete* on a person's own data page."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="NAME", help="erase all of this user's, now")
        parser.add_argument("--prove", action="store_true", help="search for what was erased")
        parser.add_argument(
            "--backup", type=Path, help="search this backup, too, or the newest one of this folder"
        )
        parser.add_argument(
            "--rewrite",
            action="store_true",
            help="write the database's files anew, so that no old bytes stay: writers wait",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.erase(options["user"])
        if options["prove"] or options["rewrite"]:
            try:
                purge_erased(is_rewritten=options["rewrite"])
                if options["prove"]:
                    self.prove(options["backup"])
            except (BackupError, PurgeError) as error:
                raise CommandError(str(error)) from error

    def erase(self, name: str | None) -> None:
        if name is None:
            self.stdout.write(f"{erase_due_conversations()} erased")
            return
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no user {name!r}", returncode=2)
        running = delete_everything(owner_id=user.pk)
        count = erase_due_conversations(owner_id=user.pk)
        left = f", {len(running)} still answering, to be erased when done" if running else ""
        held = list_held(user.pk).count()
        kept = f", {held} kept: under a legal hold" if held else ""
        self.stdout.write(f"{count} erased{left}{kept}")

    def prove(self, backup: Path | None) -> None:
        result = prove_erasures(backup=find_newest_backup(backup) if backup else None)
        for place in result.places:
            found = "not readable" if place.found is None else len(place.found) + place.dirty
            note = f" ({place.note})" if place.note else ""
            self.stdout.write(f"{place.name}: {found} found in {place.bytes:,} bytes{note}")
        self.stdout.write(
            f"{result.found} of {result.phrases} phrases and {result.words} words of"
            f" {result.erasures} erasures found"
        )
        if result.unread:
            self.stdout.write(f"not proven: {result.unread} places could not be read")
        if result.found or result.unread:
            raise SystemExit(1 if result.found else 3)
