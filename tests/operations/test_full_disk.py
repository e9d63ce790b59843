"""Where the disk is full, commands that write files say so and leave nothing half done."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agentweb.management.commands.restore import Command
from conversations.operations.backup import databases, site_backup
from conversations.operations.backup.archive import BackupError
from tests.operations.test_backup import LOGGED_IN, Site
from tests.support.environment import DATABASE

LIMITED = """
import resource
from django.core.management import CommandError, call_command
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, resource.RLIM_INFINITY))
try:
    call_command({command})
except CommandError as error:
    print("said:", error)
"""


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_where_there_is_no_room_a_backup_says_so_and_leaves_nothing(
    share: float, tmp_path: Path, request: Any
) -> None:
    """A limit of the size of files stands for a full disk: of the copy, or of the archive."""
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    site, folder = Site(tmp_path / "site", server, is_new=False), tmp_path / "backups"
    folder.mkdir()
    file = site.folder / "agentweb.sqlite3"
    # That of PostgreSQL has no file whose size were that of its dump.
    most = int(file.stat().st_size * share) if server is None else 20_000
    lines = LIMITED.format(most=most, command=f"'backup', {str(folder / 'one.tar')!r}")
    said = site.execute(lines)
    words = {0.5: f"cannot be copied into {folder}", 1.0: f"no room for the backup in {folder}"}
    assert (words[share] if server is None else "pg_dump failed: it ended") in said
    assert "Traceback" not in said
    assert list(folder.iterdir()) == []


def test_where_there_is_no_room_a_restore_says_so_and_replaces_nothing(
    tmp_path: Path, request: Any
) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    site, path = Site(tmp_path / "site", server, is_new=False), tmp_path / "backup.tar"
    site.execute(LOGGED_IN)
    site.manage("backup", str(path))
    command = f"'restore', {str(path)!r}, force=True"
    said = site.execute(LIMITED.format(most=20_000, command=command))
    assert f"no room to unpack {path} in {site.folder}" in said
    assert "Traceback" not in said
    assert not {one.name for one in site.folder.iterdir()} - {"agentweb.sqlite3", "serve.lock"}
    assert "1 user" in site.execute(
        "from conversations.models import User; print(User.objects.count(), 'user')"
    )


def test_a_restore_that_cannot_move_the_database_away_leaves_no_copy_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: Path) -> None:
        raise BackupError("locked")

    copy, target = tmp_path / "copy.sqlite3", tmp_path / "site" / "agentweb.sqlite3"
    sqlite3.connect(copy).close()
    own = SimpleNamespace(settings_dict={"NAME": str(target)}, close=lambda: None)
    monkeypatch.setattr(databases, "connection", own)
    monkeypatch.setattr(databases, "_move_aside", refuse)
    with pytest.raises(BackupError, match="locked"):
        databases.restore_sqlite(copy)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("is_other", [False, True])
@pytest.mark.django_db
def test_a_restore_that_ends_half_way_says_how_it_is_finished(
    is_other: bool, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> None:
        raise OSError("no room")

    settings.DATA_DIR = tmp_path
    manifest = SimpleNamespace(database="other" if is_other else connection.vendor)
    monkeypatch.setattr(databases, "demand_alone", lambda: None)
    monkeypatch.setattr(site_backup, "open_backup", lambda **_: manifest)
    for name in ("put_database", "put_across"):
        monkeypatch.setattr(Command, name, lambda *_: None)
    monkeypatch.setattr(Command, "put_rest", fail)
    again = "into an empty database" if is_other else "with --force"
    with pytest.raises(CommandError, match=f"no room; the restore is not .*again {again}"):
        call_command("restore", str(tmp_path / "backup.tar"), force=True)


EXPORT = """
import os, sys
from django.core.management import CommandError, call_command
from tests.support import stored_turns
played = stored_turns.played()
os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
try:
    call_command("export_conversation", str(played.conversation.public_id))
except CommandError as error:
    print("said:", error, file=sys.stderr)
"""


def test_an_export_that_could_not_be_written_is_no_success(tmp_path: Path, request: Any) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    site = Site(tmp_path / "site", server, is_new=False)
    said = site.execute(EXPORT)
    assert "said: the export is not whole: No space left on device" in said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
