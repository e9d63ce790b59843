"""A damaged SQLite file is said to be one, and nothing more is written to it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support import prepared_databases
from tests.support.forked_commands import execute_forked, run_forked

pytestmark = pytest.mark.only_database("sqlite", "it is SQLite's file")

#: A site that is used, damaged under its feet, and used on; what it meets is printed.
SCRIPT = """
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
    said = execute_forked(env, SCRIPT)
    assert re.findall(r"^\S+ \S+ \S+ damaged:$|^\d+$", said, re.MULTILINE) == [
        *["the database is damaged:"] * 3, "1", "503",
    ]  # fmt: skip
    assert said.count("CRITICAL agentweb.audit the database is damaged") == 1
    assert "manage.py restore FILE" in said
    # A server that starts on it refuses before it writes.
    before = (tmp_path / "agentweb.sqlite3").read_bytes()
    code, said = run_forked(env, "serve", "--port", "1")
    assert code == 1
    assert "is damaged: " in said
    assert "manage.py backup FILE" in said
    assert "Traceback" not in said
    assert (tmp_path / "agentweb.sqlite3").read_bytes() == before
