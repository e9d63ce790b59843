"""Killed during a write or a migration: nothing acknowledged is lost, and everything continues.

AGENTWEB_TEST_KILLS sets the kills of a long run (500 and more); its seed is printed on a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.served import PROJECT
from tests.support import database_contents, servers

KILLS = int(os.environ.get("AGENTWEB_TEST_KILLS", "20"))
KILLED = [("migrate", 8), ("steps", 5)]


def demand_contents_of_new(data: Path) -> None:
    """Demand that migrating step by step leaves what the run's own database has, made at once."""
    path = data / "contents.json"
    if not path.exists():
        return
    by_steps, at_once = json.loads(path.read_text(encoding="utf-8")), database_contents.describe()
    assert list(by_steps) == list(at_once)
    for name, rows in at_once.items():
        assert by_steps[name] == rows, name


def run(what: str, kills: int, data: Path, url: str = "") -> str:
    data.mkdir()
    seed = time.time_ns() % 1_000_000
    env = {**os.environ, "AGENTWEB_DATA_DIR": str(data), "DATABASE_URL": url}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed_processes", what, str(seed), str(kills)],
        check=False, cwd=PROJECT, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3_000:]}"
    return done.stdout


@pytest.mark.only_database("sqlite", "what is killed here holds the file itself")
def test_a_killed_writer_leaves_a_whole_file_with_all_it_acknowledged(tmp_path: Path) -> None:
    assert run("write", KILLS, tmp_path / "data").startswith(f"{KILLS} kills, ")


@pytest.mark.django_db
@pytest.mark.only_database("sqlite", "it is the file of one folder")
@pytest.mark.parametrize(("what", "count"), KILLED)
def test_a_killed_migration_is_done_again(tmp_path: Path, what: str, count: int) -> None:
    assert run(what, count, tmp_path / "data").startswith("killed ")
    demand_contents_of_new(tmp_path / "data")


@pytest.mark.django_db
@pytest.mark.only_database("postgres", "it is a database of the run's server")
@pytest.mark.parametrize(("what", "count"), KILLED)
def test_a_killed_migration_of_a_server_is_done_again(
    tmp_path: Path, postgres: servers.Server, what: str, count: int
) -> None:
    url = servers.make_database(postgres, f"killed_{what}")
    assert run(what, count, tmp_path / "data", url).startswith("killed ")
    demand_contents_of_new(tmp_path / "data")


@pytest.mark.only_database("postgres", "SQLite has one server")
def test_of_two_servers_that_migrate_at_once_the_second_finds_nothing_to_do(
    postgres: servers.Server,
) -> None:
    env = {**os.environ, "DATABASE_URL": servers.make_database(postgres, "twice")}
    command = [sys.executable, "manage.py", "migrate"]
    both = [
        subprocess.Popen(
            command, cwd=PROJECT, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("No migrations to apply" in text for text in said) == [False, True]
