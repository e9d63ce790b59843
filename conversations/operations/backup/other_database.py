"""A backup of one kind of database, restored on the other: put back beside it, and then moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection

from conversations.operations.backup import site_backup
from conversations.operations.backup.archive import BackupError, Manifest
from conversations.operations.move import site_move
from conversations.operations.move.frozen_source import SOURCE, Tell


def restore_across(
    *, manifest: Manifest, folder: Path, scratch: dict[str, Any], tell: Tell
) -> None:
    """Restore into the empty database `scratch`, of the backup's kind, and move that to the site's.

    Raises BackupError or MoveError, and then the site's database is no site.
    """
    target = site_move.read_owned_database()
    with site_move.use_owned({"default": scratch}):
        if connection.introspection.table_names():
            raise BackupError("the scratch database is not empty")
        site_backup.restore_database(manifest=manifest, folder=folder)
        call_command("migrate", interactive=False, verbosity=0)
    with site_move.use_owned({"default": target, SOURCE: scratch}):
        site_move.move_site(tell=tell)
