"""A data folder that an older version wrote: served as it is, unchanged row by row, and verified.

tests/data/data_folder_7d29afc.tar.gz was written by that commit: turns played over HTTP, versions,
an edited prompt, an attachment, budgets, a compaction and a summary by hand, an interrupted turn.
"""

from __future__ import annotations

import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.agentweb.test_serve import Visitor, embedded, rows, until
from tests.e2e import served
from tests.e2e.served import PROJECT, Served

pytestmark = embedded
OLD = PROJECT / "tests" / "data" / "data_folder_7d29afc.tar.gz"
#: Pythons of before 3.11.4 have no filters.
SAFELY: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
#: Tables whose rows nothing may change.
APPEND_ONLY = (
    "message",
    "transformation",
    "envelope",
    "apicall",
    "apiresult",
    "ledgerentry",
    "blob",
)
PASSWORD = "correct horse battery"  # of the administrator in the folder


def old_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Read the append-only tables by the columns that they had in the folder."""
    with sqlite3.connect(path) as database:
        return {
            table: database.execute(
                f"SELECT {', '.join(columns)} FROM conversations_{table}"
            ).fetchall()
            for table, columns in COLUMNS.items()
        }


COLUMNS: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("older") / "data"
    folder.mkdir(mode=0o700)
    with tarfile.open(OLD) as archive:
        archive.extractall(folder, **SAFELY)
    with sqlite3.connect(folder / "agentweb.sqlite3") as database:
        for table in APPEND_ONLY:
            found = database.execute(f"PRAGMA table_info(conversations_{table})").fetchall()
            COLUMNS[table] = [f'"{row[1]}"' for row in found]
    return folder


def log_in(running: Served) -> Visitor:
    visitor = Visitor(running.port)
    visitor.ask("GET", "/accounts/login/")
    form = {"username": "boss", "password": PASSWORD}
    status, _, _ = visitor.ask("POST", "/accounts/login/", form)
    assert status == 302
    return visitor


def test_an_older_data_folder_is_served_continued_and_verified(data: Path) -> None:
    before = old_rows(data / "agentweb.sqlite3")
    assert {table: bool(found) for table, found in before.items()} == dict.fromkeys(before, True)
    running = served.start(data, is_new=True)
    try:
        visitor = log_in(running)
        ((key,),) = rows(
            running,
            "SELECT c.public_id FROM conversations_conversation c JOIN conversations_user u"
            " ON u.id = c.owner_id WHERE u.username = 'boss'",
        )
        path = f"/c/{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}/"
        status, _, page = visitor.ask("GET", path)
        assert status == 200
        # Altered tables are new ones for SQLite: it was told again how full they are.
        counted = "SELECT 1 FROM sqlite_stat1 WHERE tbl = 'conversations_turn' LIMIT 1"
        assert rows(running, counted) == [(1,)]
        # The first prompt was answered again: what is shown is the second version.
        assert 'id="turn-6"' in page
        assert visitor.ask("GET", f"{path}inspect/")[0] == 200
        assert visitor.ask("POST", f"{path}send/", {"text": "What time is it in Tokyo?"})[0] == 302
        last = "SELECT state FROM conversations_turn ORDER BY id DESC LIMIT 1"
        until(lambda: rows(running, last) == [("done",)])
        assert "0 mismatches, chain intact" in running.manage("verify")
    finally:
        assert running.stop() == 0
    after = old_rows(data / "agentweb.sqlite3")
    assert {table: set(found) - set(after[table]) for table, found in before.items()} == {
        table: set() for table in before
    }
