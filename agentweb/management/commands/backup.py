"""Back up a running site: database, workspaces and anchors of one moment in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.operations.backup.archive import BackupError
from conversations.operations.backup.site_backup import make_backup

KEYS = (
    "The keys are not in it. Keep SECRET_KEY (the file secret_key of the data folder where none is"
    " set) and AGENTWEB_SECRETS_KEY elsewhere: without them sealed mail and MCP secrets stay"
    " closed. Nor are sessions: after a restore everybody logs in anew."
)


class Command(BaseCommand):
    help = (
        "Write database, workspaces and anchors of one moment into a new file while the site runs:"
        " a tar archive; .tar.gz is compressed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"].absolute()
        if not path.parent.is_dir():
            raise CommandError(f"there is no folder {path.parent}")
        try:
            made = make_backup(path=path)
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        left = f" ({made.gone} were deleted meanwhile)" if made.gone else ""
        self.stdout.write(f"{path}: {made.bytes:,} bytes, {made.files} files{left}.")
        if made.lost:
            self.stderr.write(
                "Files that are not in it, since this process does not find their bytes in the"
                f" storage of workspaces: {made.lost}."
            )
        self.stdout.write(KEYS)
