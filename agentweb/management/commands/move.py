"""Move the site to a database of the other kind, SQLite or PostgreSQL, with the whole record."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser
from django.db import OperationalError

from agentweb import env
from agentweb.serving.server_process import lock_data_folder
from conversations.audit.verify import Tally, verify_everything
from conversations.operations.backup import databases
from conversations.operations.backup.archive import BackupError
from conversations.operations.move import site_move
from conversations.operations.move.frozen_source import MoveError

SHOWN = 20
REST = (
    "Set DATABASE_URL to it and start the site. Files, keys and anchors stay where they are; the"
    " old database is unchanged. Everybody logs in anew."
)


class Command(BaseCommand):
    help = (
        "Copy the whole site into an empty database of the other kind, PostgreSQL or SQLite, where"
        " no server runs; compare every row, and verify the record. A move that was interrupted"
        " goes on where it was."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", required=True, metavar="URL", help="as for DATABASE_URL")
        parser.add_argument(
            "--dry-run", action="store_true", help="say how much it is and how long it takes"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            target = env.database(options["to"], name="--to")
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        with lock_data_folder():
            try:
                databases.demand_alone()
                with site_move.use_target(target):
                    self.estimate() if options["dry_run"] else self.move()
            except (BackupError, MoveError, OperationalError) as error:
                raise CommandError(str(error)) from error

    def estimate(self) -> None:
        found = site_move.estimate_move(tell=lambda _: None)
        for facts in found.inventory.tables:
            if facts.rows:
                self.stdout.write(f"{facts.name}: {facts.rows:,} rows, {facts.bytes:,} bytes")
        self.stdout.write(
            f"In all {found.inventory.rows:,} rows, {found.inventory.bytes:,} bytes: about"
            f" {max(1, round(found.seconds / 60)):,} minutes on this machine."
        )

    def move(self) -> None:
        made = site_move.move_site(tell=self.tell)
        self.stdout.write(f"{made.rows:,} rows are the same in both databases: {made.digest}")
        tally = Tally()
        for at, problem in enumerate(verify_everything(tally)):
            if at < SHOWN:
                self.stdout.write(str(problem))
        self.stdout.write(str(tally))
        self.stdout.write(REST)
        if not tally.is_clean:
            raise SystemExit(1)

    def tell(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
