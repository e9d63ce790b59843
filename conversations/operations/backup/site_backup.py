"""Makes a backup while the site is in use, and restores one while the site is stopped."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.core.files.base import ContentFile
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from conversations.audit.anchor_file import AnchorError, find_anchor_path, format_line, read_anchors
from conversations.audit.anchors import record_restore
from conversations.files.workspace.objects import find_storage
from conversations.log.findings import split_chunks
from conversations.models import AnchorMark, FileState, User, WorkspaceFile
from conversations.operations.backup import archive, databases
from conversations.operations.backup.archive import BackupError, Manifest
from conversations.operations.move.half_moved import NOTES
from tools.framework.errors import ToolError, is_of_full_disk

logger = logging.getLogger("agentweb.audit")


@dataclass(frozen=True, slots=True)
class BackupResult:
    files: int
    #: Number of files that were permanently deleted while the backup was made.
    gone: int
    #: Number of files whose bytes are not in the storage, as if its folder were another one.
    lost: int
    bytes: int


def make_backup(*, path: Path) -> BackupResult:
    """Write an archive of the database, the workspaces' files and the anchors of one moment."""
    if path.exists():
        raise BackupError(f"{path} is there already; a backup replaces nothing")
    try:
        return _write_backup(path)
    except OSError as error:
        if not is_of_full_disk(error):
            raise
        text = f"there is no room for the backup in {path.parent}: {error.strerror}"
        raise BackupError(f"{text}; nothing of it is left there") from error


def _write_backup(path: Path) -> BackupResult:
    files, missing = 0, list[str]()
    with (
        tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder,
        databases.copy_database(Path(folder)) as (copy, objects, anchor, migrations),
    ):
        at = timezone.now().isoformat(timespec="seconds")
        manifest = Manifest(at, connection.vendor, copy.name, migrations, anchor)
        with archive.write_archive(path, manifest) as writer:
            writer.add_path(copy.name, copy)
            writer.add_bytes(archive.ANCHORS, _read_anchor_lines(anchor))
            for name in objects:
                try:
                    with find_storage().open(name) as file:
                        writer.add_bytes(archive.FILES + name, file.read())
                    files += 1
                except (FileNotFoundError, ToolError):
                    missing.append(name)
    lost = _count_kept(missing)
    logger.info("backup with %d files made at %s", files, at)
    return BackupResult(files, len(missing) - lost, lost, path.stat().st_size)


def _count_kept(names: list[str]) -> int:
    """Count those of the objects that a file of a person still has."""
    kept = WorkspaceFile.objects.filter(state__in=(FileState.LIVE, FileState.TRASH))
    return sum(kept.filter(object__in=some).count() for some in split_chunks(names))


def _read_anchor_lines(last: int) -> bytes:
    """Return the anchors up to the snapshot's last; later ones cover rows it does not have."""
    path = find_anchor_path()
    if path is None or not path.exists():
        return b""
    rows = (anchor for anchor in read_anchors(path) if anchor.number <= last)
    return "".join(f"{format_line(anchor)}\n" for anchor in rows).encode()


def holds_data() -> bool:
    """Return whether a restore would replace a database that is in use, or a damaged one."""
    try:
        present = connection.introspection.table_names()
        # Half of a site is what an interrupted restore into the other kind of database left.
        is_whole = User._meta.db_table in present and NOTES not in present
        return is_whole and User.objects.exists()
    except DatabaseError:
        return True


def open_backup(*, path: Path, folder: Path) -> Manifest:
    """Unpack a backup; raises BackupError unless it is intact and fits this site and version."""
    manifest = archive.unpack_archive(path, folder)
    if manifest.database not in ("sqlite", "postgresql"):
        raise BackupError(f"the backup is of {manifest.database}, on which no site runs")
    known = MigrationLoader(None).disk_migrations
    newer = [
        f"{app}.{name}"
        for app, name in manifest.migrations.items()
        if app == "conversations" and (app, name) not in known
    ]
    if newer:
        raise BackupError(f"the backup is of a newer version of agentweb ({newer[0]})")
    return manifest


def restore_database(*, manifest: Manifest, folder: Path) -> Path | None:
    """Restore the database; return where the previous one is kept, if it is."""
    copy = folder / manifest.member
    if connection.vendor == "sqlite":
        return databases.restore_sqlite(copy)
    databases.restore_postgres(copy)
    return None


def restore_workspace_files(*, folder: Path) -> int:
    """Restore the workspaces' files that are missing or damaged; return how many."""
    root, count = folder / archive.FILES, 0
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        name = path.relative_to(root).as_posix()
        if path.is_file() and not _is_stored(name, path):
            # An object is never changed, so another one of its name is damaged.
            find_storage().delete(name)
            find_storage().save(name, ContentFile(path.read_bytes()))
            count += 1
    return count


def _is_stored(name: str, path: Path) -> bool:
    """Return whether the storage has an object with the bytes of a file."""
    try:
        with find_storage().open(name) as file:
            return bool(file.read() == path.read_bytes())
    except (FileNotFoundError, ToolError):
        return False


def restore_anchors(*, manifest: Manifest, folder: Path) -> str:
    """Make database and anchors consistent again; return a description of the result.

    An anchor file that is not the restored database's is kept beside the backup's.
    """
    path, kept = find_anchor_path(), folder / archive.ANCHORS
    if path is None:
        return "AGENTWEB_ANCHOR_FILE is off: nothing outside the database vouches for it"
    if not path.exists():
        return _put_anchors(kept, path)
    mark = AnchorMark.objects.filter(pk=1).first() or AnchorMark()
    last = _find_last_anchor(path, mark)
    if last is None:
        before = _move_anchors_aside(path)
        return (
            f"the anchor file that was there does not belong to the backup and is now {before};"
            f" {_put_anchors(kept, path)}"
        )
    if last <= mark.number:
        return f"{path} holds no later anchors"
    try:
        record_restore(reason=f"the backup of {manifest.made_at} was put back")
    except AnchorError as error:
        raise BackupError(str(error)) from error
    return f"{path} now says that the backup was put back"


def _find_last_anchor(path: Path, mark: AnchorMark) -> int | None:
    """Return the file's last number; None unless it is intact and holds the mark's line.

    A database that was never anchored has no line, so any file may go on after it.
    """
    try:
        digests = {anchor.number: anchor.digest for anchor in read_anchors(path)}
    except AnchorError:
        return None
    if mark.number and digests.get(mark.number) != mark.digest:
        return None
    return max(digests, default=0)


def _move_anchors_aside(path: Path) -> Path:
    before = databases.name_previous(path)
    try:
        return path.replace(before)
    except OSError as error:
        # A mounted file and write-once storage refuse it.
        raise BackupError(
            f"the anchor file {path} does not belong to the backup and cannot be moved away:"
            f" {error.strerror}"
        ) from error


def _put_anchors(kept: Path, path: Path) -> str:
    if not kept.stat().st_size:
        return "there are no anchors in the backup"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(kept.read_bytes())
    path.chmod(0o600)
    return f"the anchors of the backup were put into {path}"
