"""The search of a backup, unpacked into a folder that goes with it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conversations.models import FileState, WorkspaceFile
from conversations.operations.backup import archive
from conversations.operations.backup.archive import BackupError
from conversations.operations.leftovers.places import Place, Wanted, search_sqlite
from conversations.operations.leftovers.sqlite_pages import read_file

_ENDINGS = (".tar", ".tar.gz", ".tgz")


def find_newest_backup(path: Path) -> Path:
    """Return the file itself, or the newest backup of a folder; raises BackupError."""
    if path.is_file():
        return path
    found = [one for one in path.glob("*") if one.name.endswith(_ENDINGS)] if path.is_dir() else []
    if not found:
        raise BackupError(f"there is no backup at {path}")
    return max(found, key=lambda one: one.stat().st_mtime)


def search_backup(wanted: Wanted, path: Path) -> Iterator[Place]:
    """Search a backup: the database in it, and files that no person keeps any more."""
    kept = WorkspaceFile.objects.filter(state__in=(FileState.LIVE, FileState.TRASH))
    names = {f"{archive.FILES}{name}" for name in kept.values_list("object", flat=True)}
    with tempfile.TemporaryDirectory(prefix="agentweb-") as folder:
        root = Path(folder)
        manifest = archive.unpack_archive(path, root)
        database = root / manifest.member
        if manifest.database == "sqlite":
            yield from search_sqlite(wanted, database, "backup")
        else:
            yield Place("backup: database", *wanted.find_phrases(_read_dump(database)))
        for part in manifest.parts:
            if part.name != manifest.member and part.name not in names:
                file = root / part.name
                yield Place(f"backup: {part.name}", *wanted.find_phrases(read_file(file)))


def _read_dump(path: Path) -> Iterator[bytes]:
    """Yield the text of PostgreSQL's compressed dump."""
    command = ["pg_restore", "--file=-", str(path)]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None  # noqa: S101
            while data := program.stdout.read(1_000_000):
                yield data
    except FileNotFoundError as error:
        raise BackupError("pg_restore is not there: install the PostgreSQL client") from error
    if program.returncode:
        raise BackupError("pg_restore could not read the backup")
