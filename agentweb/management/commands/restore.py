"""Restore a backup while no server runs; replaces data only if requested, and verifies it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import OperationalError, connection

from agentweb import env
from agentweb.serving.server_process import lock_data_folder
from conversations.audit.verify import Tally, verify_everything
from conversations.library.shared_links import list_unrevoked_links, revoke_link
from conversations.operations.backup import databases, site_backup
from conversations.operations.backup.archive import BackupError, Manifest
from conversations.operations.backup.old_access import end_old_access, list_old_access
from conversations.operations.backup.other_database import restore_across
from conversations.operations.db_role import connect_as_owner
from conversations.operations.move.frozen_source import MoveError

SHOWN = 20


class Command(BaseCommand):
    help = (
        "Put a backup back where no server runs, also into a database of the other kind, then"
        " verify the whole record."
    )
    #: What is said after an error once the database is replaced.
    after = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace what is there")
        parser.add_argument(
            "--scratch-database",
            metavar="URL",
            help="an empty PostgreSQL database, to unpack a backup of PostgreSQL for SQLite in",
        )
        parser.add_argument(
            "--end-access",
            action="store_true",
            help="end the API tokens, invitations and links to chats that work by the backup",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with lock_data_folder():
            try:
                self.restore(
                    options["file"], is_forced=options["force"], scratch=options["scratch_database"]
                )
                self.tell_access(ends=options["end_access"])
            except (BackupError, MoveError, OSError, OperationalError) as error:
                raise CommandError(f"{str(error).strip()}{self.after}") from error
            self.verify()

    def restore(self, path: Path, *, is_forced: bool, scratch: str | None) -> None:
        databases.demand_alone()
        if not is_forced and site_backup.holds_data():
            raise CommandError("there is a site in this database; --force replaces it")
        place = Path(settings.DATA_DIR)
        with tempfile.TemporaryDirectory(dir=place, prefix=".restore-") as name:
            folder = Path(name)
            manifest = site_backup.open_backup(path=path, folder=folder)
            if manifest.database == connection.vendor:
                self.put_database(manifest, folder)
                again = "with --force"
            else:
                self.put_across(manifest, folder, scratch)
                again = "into an empty database"
            self.after = f"; the restore is not complete: run it again {again}"
            call_command("migrate", interactive=False, verbosity=0)
            self.put_rest(manifest, folder)

    def put_database(self, manifest: Manifest, folder: Path) -> None:
        with connect_as_owner():
            before = site_backup.restore_database(manifest=manifest, folder=folder)
        if before is not None:
            self.stdout.write(f"The database that was there is now {before}.")

    def put_across(self, manifest: Manifest, folder: Path, url: str | None) -> None:
        if manifest.database == "postgresql" and not url:
            raise BackupError(
                "the backup is of PostgreSQL and the site runs on SQLite: name an empty PostgreSQL"
                " database to unpack it in with --scratch-database URL"
            )
        scratch = read_scratch(url) if url else env.sqlite(folder / "scratch.sqlite3")
        restore_across(manifest=manifest, folder=folder, scratch=scratch, tell=self.stdout.write)
        if url:
            self.stdout.write("The scratch database is needed no longer: drop it.")

    def put_rest(self, manifest: Manifest, folder: Path) -> None:
        files = site_backup.restore_workspace_files(folder=folder)
        anchors = site_backup.restore_anchors(manifest=manifest, folder=folder)
        self.stdout.write(f"The site of {manifest.made_at} is back: {files} files; {anchors}.")

    def tell_access(self, *, ends: bool) -> None:
        """End what the backup brings back of access, or tell what that is."""
        tokens, invitations = end_old_access() if ends else list_old_access()
        links = list_unrevoked_links()
        if ends:
            for link in links:
                revoke_link(conversation=link.conversation, actor=None, peer="")
        found = (
            f"{len(tokens)} API tokens, {len(invitations)} invitations and {len(links)} links to"
            " chats"
        )
        if ends:
            self.stdout.write(f"Ended: {found}.")
        elif tokens or invitations or links:
            self.stdout.write(
                f"What was ended since the backup works again: of {found}, those that should not"
                " must be ended anew, in the admin, or all of them by a restore with --end-access."
                " Accounts, passwords and second factors are those of the backup, too."
            )

    def verify(self) -> None:
        tally = Tally()
        for at, problem in enumerate(verify_everything(tally)):
            if at < SHOWN:
                self.stdout.write(str(problem))
        self.stdout.write(str(tally))
        if not tally.is_clean:
            raise SystemExit(1)


def read_scratch(url: str) -> dict[str, Any]:
    try:
        return env.owner_database(url, name="--scratch-database")
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from None
