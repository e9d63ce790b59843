"""A backup made while people write is one moment of the site, and comes back whole or not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agentweb.management.commands.restore import read_scratch
from agentweb.serving.server_process import lock_data_folder
from conversations.models import AnchorMark, User
from conversations.operations.backup import archive, site_backup
from tests.e2e.served import PROJECT
from tests.support import people_and_turns, prepared_databases, servers
from tests.support.environment import DATABASE
from tests.support.forked_commands import execute_forked, run_forked

#: Plays one turn after another until its input ends; prints each when it is acknowledged.
WRITER = """
import sys, threading, django
from uuid import uuid4
django.setup()
from django.core.files.base import ContentFile
from tests.support import people_and_turns, stored_turns
from conversations.models import User
from conversations.audit import anchors
from conversations.files.workspace.objects import find_storage
from conversations.models import WorkspaceFile
from tools.workspace.workspace import compute_digest
from django.utils import timezone
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
place = stored_turns.played()
for state, data in (("live", b"a note"), ("trash", b"a thrown one")):
    name = find_storage().save(f"{place.user.pk}/{state}", ContentFile(data))
    WorkspaceFile.objects.create(
        owner=place.user, state=state, path=f"{state}.txt", object=name, bytes=len(data),
        digest=compute_digest(data), changed_at=timezone.now(),
        batch=uuid4() if state == "trash" else None,
    )
anchors.anchor_heads()
at = 0
while not over.is_set():
    at += 1
    people_and_turns.answered(people_and_turns.next_turn(place.conversation, f"Message {at}"))
    print(at, flush=True)
    over.wait(0.05)
anchors.anchor_heads()
"""
COUNT = """
from conversations.models import Message, WorkspaceFile
from conversations.files.workspace.objects import read_object
print(Message.objects.filter(kind="prompt").count())
print([read_object(file) for file in WorkspaceFile.objects.order_by("state")])
"""


class Site:
    """A data folder and a database of its own, for processes; with its tables, if it has a past."""

    def __init__(self, folder: Path, postgres: servers.Server | None, *, is_new: bool) -> None:
        folder.mkdir()
        self.folder = folder
        self.env = {**os.environ, "AGENTWEB_DATA_DIR": str(folder), "AGENTWEB_ANCHOR_FILE": ""}
        if postgres is not None:
            binaries = Path(postgres.command[0]).parent
            made = (
                servers.make_database(postgres, "new")
                if is_new
                else prepared_databases.postgres(postgres)
            )
            self.env["DATABASE_URL"] = made
            self.env["PATH"] = f"{binaries}:{os.environ['PATH']}"
        elif not is_new:
            shutil.copy(prepared_databases.sqlite(), folder)

    def execute(self, lines: str) -> str:
        return execute_forked(self.env, lines)

    def manage(self, *arguments: str, code: int = 0) -> str:
        ended, said = run_forked(self.env, *arguments)
        assert ended == code, said
        return said


def test_a_backup_made_under_load_comes_back_whole(tmp_path: Path, request: Any) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    old = Site(tmp_path / "old", server, is_new=False)
    new = Site(tmp_path / "new", server, is_new=True)
    path = tmp_path / "backup.tar.gz"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER], cwd=PROJECT, env=old.env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert writer.stdout is not None
    before = int(writer.stdout.readline())
    told: list[int] = [before]
    reading = threading.Thread(target=lambda: told.extend(map(int, writer.stdout or ())))
    reading.start()
    said = old.manage("backup", str(path))
    assert writer.stdin is not None
    writer.stdin.close()
    assert writer.wait(timeout=120) == 0
    reading.join()
    assert "2 files." in said
    assert "The keys are not in it" in said
    assert not any("secret_key" in name for name in names(path))
    said = new.manage("restore", str(path))
    assert "2 files; the anchors of the backup were put into" in said
    assert "1 conversation, " in said
    assert "chain intact" in said
    prompts, files = new.execute(COUNT).splitlines()
    assert before < int(prompts) <= told[-1] + 1
    assert files == "[b'a note', b'a thrown one']"
    # Back over the old site, which has gone on since: its anchors know later rows.
    said = old.manage("restore", str(path), "--force")
    assert "now says that the backup was put back" in said
    assert "chain intact" in said


@pytest.mark.only_database("sqlite", "of files, not of the database")
def test_files_that_are_lost_or_damaged_are_named_and_come_back(tmp_path: Path) -> None:
    site, path = Site(tmp_path / "site", None, is_new=False), tmp_path / "backup.tar"
    site.execute(
        "from conversations.runtime.adapters import workspace_for\n"
        "from tests.support import people_and_turns\n"
        "files = workspace_for(people_and_turns.person().pk)\n"
        "[files.write(name, name.encode()) for name in ('a.txt', 'b.txt', 'c.txt')]"
    )
    assert "3 files." in site.manage("backup", str(path))
    lost, damaged, _ = sorted((site.folder / "workspaces").glob("*/*"))
    lost.unlink()
    damaged.write_bytes(b"odd")
    said = site.manage("backup", str(tmp_path / "later.tar"))
    assert "2 files." in said
    assert "Files that are not in it" in said
    assert "2 files;" in site.manage("restore", str(path), "--force")
    assert site.execute(COUNT).splitlines()[1] == "[b'a.txt', b'b.txt', b'c.txt']"


#: Plays and anchors that many turns, each in a line of its own.
ANCHORED = """
from tests.support import stored_turns
from conversations.audit import anchors
for at in range({}):
    stored_turns.played(f"user{{at}}")
    anchors.anchor_heads()
"""


@pytest.mark.parametrize("lines", [0, 1, 3], ids=["empty", "shorter", "longer"])
def test_anchors_of_another_site_are_kept_beside_those_of_the_backup(
    lines: int, tmp_path: Path, request: Any
) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    old = Site(tmp_path / "old", server, is_new=False)
    new = Site(tmp_path / "new", server, is_new=False)
    path, file = tmp_path / "backup.tar", tmp_path / "elsewhere" / "anchors"
    new.env["AGENTWEB_ANCHOR_FILE"] = str(file)
    file.parent.mkdir()
    file.touch()
    old.execute(ANCHORED.format(2))
    new.execute(ANCHORED.format(lines))
    foreign = file.read_bytes()
    assert foreign.count(b"\n") == lines
    old.manage("backup", str(path))
    said = new.manage("restore", str(path), "--force")
    assert "does not belong to the backup and is now" in said
    assert f"the anchors of the backup were put into {file}" in said
    assert "chain intact" in said
    assert file.read_bytes() == (old.folder / "anchors.jsonl").read_bytes()
    assert [one.read_bytes() for one in file.parent.glob("*.before-*")] == [foreign]
    new.manage("anchor")
    # The site's own file stays, also where it has no later anchors.
    assert "holds no later anchors" in old.manage("restore", str(path), "--force")
    assert not list(old.folder.glob("anchors*.before-*"))


def test_changed_anchors_are_kept_beside_those_of_the_backup(tmp_path: Path, request: Any) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    site, path = Site(tmp_path / "site", server, is_new=False), tmp_path / "backup.tar"
    file = site.folder / "anchors.jsonl"
    site.execute(ANCHORED.format(2))
    site.manage("backup", str(path))
    whole = file.read_bytes()
    changed = whole.replace(b"sha256:", b"sha256:0", 1)
    file.write_bytes(changed)
    assert "is now" in site.manage("restore", str(path), "--force")
    assert file.read_bytes() == whole
    assert [one.read_bytes() for one in site.folder.glob("anchors*.before-*")] == [changed]


def test_a_backup_without_its_anchors_leaves_no_foreign_ones_in_their_place(
    tmp_path: Path, request: Any
) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    old = Site(tmp_path / "old", server, is_new=False)
    new = Site(tmp_path / "new", server, is_new=False)
    path, file = tmp_path / "backup.tar", new.folder / "anchors.jsonl"
    old.execute(ANCHORED.format(1))
    new.execute(ANCHORED.format(2))
    old.env["AGENTWEB_ANCHOR_FILE"] = "off"
    old.manage("backup", str(path))
    said = new.manage("restore", str(path), "--force", code=1)
    assert "there are no anchors in the backup" in said
    assert "missing: the database was anchored 1 times" in said
    assert not file.exists()
    new.manage("anchor", "--new-file", "the anchors are lost")
    assert "chain intact" in new.manage("verify")


@pytest.mark.django_db
def test_anchors_that_cannot_be_moved_are_named(tmp_path: Path, settings: Any) -> None:
    # With the time behind it, the name is longer than a file's may be.
    file = tmp_path / ("a" * 250)
    file.touch()
    settings.AGENTWEB_ANCHOR_FILE = str(file)
    AnchorMark.objects.update_or_create(pk=1, defaults={"number": 1, "digest": "sha256:1"})
    manifest = archive.Manifest("2026", connection.vendor, "database", {}, 1)
    with pytest.raises(archive.BackupError, match="cannot be moved away: File name too long"):
        site_backup.restore_anchors(manifest=manifest, folder=tmp_path)
    assert file.exists()


@pytest.mark.parametrize("url", ["sqlite:///x", "owner@host/x", "postgresql://o:hunter2/x@host/y"])
def test_a_wrong_scratch_database_is_refused_by_the_name_of_its_option(url: str) -> None:
    with pytest.raises(CommandError, match=r"^--scratch-database: ") as refusal:
        read_scratch(url)
    assert "hunter2" not in str(refusal.value)


def names(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


@pytest.fixture
def archived(tmp_path: Path) -> Path:
    path = tmp_path / "backup.tar"
    manifest = archive.Manifest("2026", connection.vendor, "database", {})
    with archive.write_archive(path, manifest) as writer:
        writer.add_bytes("database", b"0123456789" * 2_000)
    return path


def test_a_damaged_archive_is_refused(archived: Path, tmp_path: Path) -> None:
    assert archive.unpack_archive(archived, tmp_path / "whole").parts[0].size == 20_000
    whole = archived.read_bytes()
    for at, (data, words) in enumerate(
        [
            (whole[:9_000] + b"????" + whole[9_004:], "is damaged: database is not"),
            (whole[:9_000], "is no whole backup"),
            (b"text", "is no whole backup"),
        ]
    ):
        archived.write_bytes(data)
        with pytest.raises(archive.BackupError, match=words):
            archive.unpack_archive(archived, tmp_path / str(at))


@pytest.mark.django_db
def test_a_backup_of_another_database_or_a_newer_version_is_refused(
    archived: Path, tmp_path: Path
) -> None:
    assert (
        site_backup.open_backup(path=archived, folder=tmp_path / "0").database == connection.vendor
    )
    for at, changes in enumerate(
        [{"database": "oracle"}, {"migrations": {"conversations": "9999_later"}}, {"format": 2}], 1
    ):
        path = tmp_path / f"{at}.tar"
        manifest = archive.Manifest("2026", connection.vendor, "database", {})
        for name, value in changes.items():
            setattr(manifest, name, value)
        with archive.write_archive(path, manifest) as writer:
            writer.add_bytes("database", b"")
        with pytest.raises(archive.BackupError, match=r"is of (oracle|a newer|format 2)"):
            site_backup.open_backup(path=path, folder=tmp_path / str(at))


@pytest.mark.django_db(transaction=True)
def test_nothing_is_replaced_unasked(archived: Path, tmp_path: Path, settings: Any) -> None:
    with pytest.raises(archive.BackupError, match="a backup replaces nothing"):
        site_backup.make_backup(path=archived)
    settings.DATA_DIR = tmp_path
    people_and_turns.person()
    with pytest.raises(CommandError, match=r"--force replaces it|others use the database"):
        call_command("restore", str(archived))
    if DATABASE == "sqlite":
        with lock_data_folder(), pytest.raises(CommandError, match="already serves"):
            call_command("restore", str(archived), force=True)
    assert User.objects.exists()


def test_an_archive_with_links_or_files_it_does_not_list_is_refused(
    archived: Path, tmp_path: Path
) -> None:
    link = tarfile.TarInfo("workspaces")
    link.type, link.linkname = tarfile.SYMTYPE, "."
    for at, (odd, words) in enumerate(
        [
            (link, "is no plain file"),
            (tarfile.TarInfo("more"), "other files than it lists"),
            (tarfile.TarInfo("workspaces/../../out"), "is outside of the archive"),
            (tarfile.TarInfo(f"{tmp_path}/out"), "is outside of the archive"),
            (tarfile.TarInfo(archive.MANIFEST), "is no whole backup"),
        ]
    ):
        path = tmp_path / f"{at}.tar"
        path.write_bytes(archived.read_bytes())
        with tarfile.open(path, "a") as tar:
            tar.addfile(odd)
        with pytest.raises(archive.BackupError, match=words):
            archive.unpack_archive(path, tmp_path / str(at))
    assert not (tmp_path / "out").exists()


LOGGED_IN = """
from conversations.models.sessions import SessionStore
from conversations.models import User
User.objects.create_user("ada")
session = SessionStore()
session.create()
print(session.session_key)
"""


@pytest.mark.only_database("sqlite", "of SQLite's one file")
def test_a_damaged_database_is_replaced_and_kept_and_no_session_is_in_a_backup(
    tmp_path: Path,
) -> None:
    site, path = Site(tmp_path / "site", None, is_new=False), tmp_path / "backup.tar"
    key = site.execute(LOGGED_IN).strip()
    site.manage("backup", str(path))
    assert len(key) == 32
    assert key.encode() in (site.folder / "agentweb.sqlite3").read_bytes()
    assert key.encode() not in path.read_bytes()
    (site.folder / "agentweb.sqlite3").write_bytes(b"no database" * 2_000)
    assert "--force replaces it" in site.manage("restore", str(path), code=1)
    assert ".before-" in site.manage("restore", str(path), "--force")
    assert [one.read_bytes()[:11] for one in site.folder.glob("*.before-*")] == [b"no database"]


NEWER = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE conversations_later"
                   " (user_id bigint REFERENCES conversations_user (id))")
"""


@pytest.mark.only_database("postgres", "of tables that stay beside those put back")
def test_a_backup_goes_back_over_the_tables_of_a_newer_version(
    tmp_path: Path, request: Any
) -> None:
    server, path = request.getfixturevalue("postgres"), tmp_path / "backup.tar"
    site = Site(tmp_path / "site", server, is_new=False)
    key = site.execute(LOGGED_IN).strip()
    site.manage("backup", str(path))
    assert len(key) == 32
    assert key.encode() not in path.read_bytes()
    for _ in range(2):
        site.execute(NEWER)
        site.manage("restore", str(path), "--force")
