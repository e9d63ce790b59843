"""A damaged SQLite file is said to be one, and nothing more is written to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.served import PROJECT
from tests.support import prepared_databases

pytestmark = pytest.mark.only_database("sqlite", "it is SQLite's file")

#: A site that is used, damaged under its feet, and used on; what it meets is printed.
SCRIPT = """
import django
django.setup()
from django.db import connection, connections
from django.test import Client
from conversations.models import Conversation, Message, User
from conversations.operations.db_damage import DatabaseDamaged
from tests.support import people_and_turns, stored_turns
place = stored_turns.played(result="A long text. " * 9_000)
connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
with connection.cursor() as cursor:
    cursor.execute("SELECT rootpage FROM sqlite_master WHERE name = 'conversations_message'")
    page = cursor.fetchone()[0]
connections.close_all()
path = connection.settings_dict["NAME"]
with open(path, "r+b") as file:
    file.seek((page - 1) * 4096)
    file.write(b"~" * 4096)
for act in (
    lambda: list(Message.objects.all()),
    lambda: User.objects.create(username="bea"),
    lambda: people_and_turns.queued(place.user),
):
    try:
        act()
    except DatabaseDamaged as error:
        print(str(error)[:24])
print(Conversation.objects.count())
print(Client().get("/healthz/ready", HTTP_HOST="localhost").status_code)
"""


def test_what_meets_a_damaged_page_says_so_and_writes_no_more(tmp_path: Path) -> None:
    shutil.copy(prepared_databases.sqlite(), tmp_path)
    env = {**os.environ, "AGENTWEB_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=False, cwd=PROJECT, env=env,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*["the database is damaged:"] * 3, "1", "503"]
    assert done.stderr.count("CRITICAL agentweb.audit the database is damaged") == 1
    assert "manage.py restore FILE" in done.stderr
    # A server that starts on it refuses before it writes.
    before = (tmp_path / "agentweb.sqlite3").read_bytes()
    done = subprocess.run(
        [sys.executable, "manage.py", "serve", "--port", "1"], check=False, cwd=PROJECT, env=env,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is damaged: " in done.stderr
    assert "manage.py backup FILE" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "agentweb.sqlite3").read_bytes() == before
