"""A site moved to the other database is the same there, however often the move is killed."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import md5
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from agentweb.bench import table_sums
from conversations.operations.move import canonical_rows
from conversations.operations.move.canonical_rows import Column, Table
from tests.rig.forking import Template, base, clean
from tests.rig.processes import Process
from tests.support import prepared_databases, servers

KILLS = 2
CALL = "tests.support.moved_site:"


class Site:
    """An installation whose processes are forked."""

    def __init__(self, folder: Path, url: str = "") -> None:
        folder.mkdir(exist_ok=True)
        own = {"AGENTWEB_DATA_DIR": str(folder), "SECRET_KEY": "only to move, " * 4}
        own |= {"DJANGO_SETTINGS_MODULE": "agentweb.settings"}
        named = {"DATABASE_URL": url} if url else {}
        self.folder, self.environment = folder, {**own, **named}
        self.template: Template = base().template(folder, clean() | self.environment)

    def call(self, function: str, **arguments: Any) -> Any:
        log = self.folder / f"{function}.log"
        return self.template.call(f"{CALL}{function}", log, **arguments)

    def begin(self, url: str, function: str = "move_in_small_batches") -> Process:
        log = self.folder / f"move-{time.monotonic_ns()}.log"
        return self.template.start("move", f"{CALL}{function}", log, url=url)

    def manage(self, *arguments: str, programs: str) -> tuple[int, str]:
        """Run a command to its end, with PostgreSQL's programs; return its code and its words."""
        process = self.template.start(
            arguments[0],
            "tests.support.site_commands:run_command",
            self.folder / f"{arguments[0]}-{time.monotonic_ns()}.log",
            environment={"PATH": programs},
            arguments=arguments,
        )
        return process.wait(), process.tail()

    def move(self, url: str) -> tuple[int, str]:
        """Run the command to its end; return its code, and what it said."""
        process = self.begin(url)
        return process.wait(), process.tail(100_000)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("moved")
    shutil.copy(prepared_databases.sqlite(), folder)
    found = Site(folder)
    found.call("fill")
    yield found
    found.template.end()


def test_a_move_there_and_back_loses_nothing_though_it_is_killed_at_random_moments(
    site: Site, postgres: servers.Server, tmp_path: Path
) -> None:
    url, chance = prepared_databases.postgres(postgres), random.Random()
    for _ in range(KILLS):
        process, at = site.begin(url), chance.randrange(1, 60)
        while process.is_running and process.tail().count("\n") < at:
            time.sleep(0.005)
        process.kill()
    assert site.begin(url, "move_until_all_is_copied").wait() == 3
    code, said = site.move(url)
    assert code == 0, said
    assert "Going on with a move that was interrupted." in said
    assert "2 conversations, " in said
    assert "0 mismatches, chain intact" in said
    source, moved = site.folder / "agentweb.sqlite3", Site(site.folder / "moved", url)
    compare_by_postgresql(source, url)
    shutil.copy(site.folder / "anchors.jsonl", moved.folder)
    back = tmp_path / "back.sqlite3"
    shutil.copy(prepared_databases.sqlite(), back)
    code, said = moved.move(f"sqlite://{back}")
    assert code == 0, said
    compare_files(source, back, url)
    pages, others = site.call("read_pages"), moved.call("read_pages")
    for path, text in pages.items():
        assert text.splitlines() == others[path].splitlines(), path
    assert moved.call("create_person") == site.call("create_person")
    moved.template.end()


def test_a_backup_of_one_database_is_restored_on_the_other(
    site: Site, postgres: servers.Server, tmp_path: Path
) -> None:
    url, scratch = prepared_databases.postgres(postgres), servers.make_database(postgres, "scratch")
    there, here = Site(tmp_path / "there", url), Site(tmp_path / "here")
    shutil.copy(prepared_databases.sqlite(), here.folder)
    programs = f"{Path(postgres.command[0]).parent}:{os.environ['PATH']}"
    for begin, end, more in ((site, there, ()), (there, here, ("--scratch-database", scratch))):
        path = str(tmp_path / f"{end.folder.name}.tar")
        for one, arguments in ((begin, ["backup", path]), (end, ["restore", path, *more])):
            code, said = one.manage(*arguments, programs=programs)
            assert code == 0, said
        assert "1 files; the anchors of the backup were put into" in said
        assert "2 conversations, " in said
        assert "0 mismatches, chain intact" in said
    compare_by_postgresql(site.folder / "agentweb.sqlite3", url)
    compare_files(site.folder / "agentweb.sqlite3", here.folder / "agentweb.sqlite3", url)
    code, said = here.manage("restore", path, "--force", programs=programs)
    assert (code, "with --scratch-database URL" in said) == (1, True)
    there.template.end()
    here.template.end()


def compare_by_postgresql(path: Path, url: str) -> None:
    """Compare all rows as PostgreSQL itself and sqlite3 have them."""
    types = table_sums.read_types(url)
    before, after = table_sums.sum_sqlite(path, types), table_sums.sum_postgresql(url, types)
    assert table_sums.list_differences(before, after) == []
    assert before["conversations_message"][0] > 10
    with closing(sqlite3.connect(path)) as source, psycopg.connect(url) as moved:
        for name, column, key in (
            ("message", "content", "id"), ("blob", "text", "digest"),
            ("apiresult", "usage", "id"), ("transformation", "chain", "id"),
        ):  # fmt: skip
            rows = source.execute(f"SELECT {column} FROM conversations_{name} ORDER BY {key}")
            whole = md5("".join(text for (text,) in rows).encode()).hexdigest()
            by = f'{key} COLLATE "C"' if key == "digest" else key
            sql = f"SELECT md5(string_agg({column}, '' ORDER BY {by})) FROM conversations_{name}"
            assert moved.execute(sql.encode()).fetchall() == [(whole,)], name
        assert moved.execute("SELECT count(*) FROM conversations_databasemove").fetchall() == [(1,)]
        assert moved.execute("SELECT to_regclass('agentweb_move')").fetchall() == [(None,)]


def compare_files(one: Path, other: Path, url: str) -> None:
    """Compare all rows of two files, JSON included; the types are those of PostgreSQL."""
    types = table_sums.read_types(url)
    before, after = (table_sums.sum_sqlite(path, types, has_json=True) for path in (one, other))
    assert table_sums.list_differences(before, after) == []
    before["conversations_message"] = (0, 0)
    assert table_sums.list_differences(before, after) == ["conversations_message"]


def test_what_postgresql_refuses_is_named_before_anything_is_copied(
    site: Site, fresh_postgres_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    shutil.copy(site.folder / "agentweb.sqlite3", folder)
    with closing(sqlite3.connect(folder / "agentweb.sqlite3")) as database:
        database.execute("UPDATE conversations_user SET first_name = 'a' || char(0) WHERE id = 2")
        database.execute(
            "UPDATE conversations_user SET preferences = '{\"x\": 1e+20}' WHERE id = 1"
        )
        database.execute("UPDATE conversations_user SET date_joined = 'then' WHERE id = 1")
        database.commit()
    odd = Site(folder)
    code, said = odd.move(fresh_postgres_url)
    odd.template.end()
    assert code == 1
    assert "conversations_user 2: first_name has a NUL character, at 1" in said
    assert "conversations_user 1: preferences has the number 1e+20" in said
    assert "conversations_user 1: date_joined cannot be read" in said
    with psycopg.connect(fresh_postgres_url) as database:
        assert database.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")


def test_a_move_is_refused_where_it_would_mix_or_lose(
    site: Site, postgres: servers.Server, tmp_path: Path
) -> None:
    code, said = site.move(f"sqlite://{tmp_path}/other.sqlite3")
    assert (code, "of that kind already" in said) == (1, True)
    url = prepared_databases.postgres(postgres)
    with psycopg.connect(url) as database:
        database.execute(
            "INSERT INTO conversations_sitechain (id, links, chain, anchored) VALUES (1, 5, 'x', 0)"
            " ON CONFLICT (id) DO UPDATE SET links = 5"
        )
    code, said = site.move(url)
    assert (code, "there is a site in that database" in said) == (1, True)
    with psycopg.connect(url) as database:
        database.execute("DELETE FROM conversations_sitechain")
        database.execute("CREATE TABLE agentweb_move (name text PRIMARY KEY, value text)")
    code, said = site.move(url)
    assert (code, "another state of this one" in said) == (1, True)


@pytest.mark.parametrize(
    ("kind", "value", "what"),
    [
        ("text", "line\0", "has a NUL character, at 4"),
        ("text", "longer", "is longer than 5 characters"),
        ("text", 5, "is no text"),
        ("text", "\ud800", "cannot be read"),
        ("number", 2**31, "is a number that is too large"),
        ("number", "x", "is no number"),
        ("uuid", "x", ""),
        ("moment", "2026-11-25 12:00:00", ""),
        ("moment", "soon", "cannot be read"),
        ("json", '"\\u0000"', "has a NUL character"),
        ("json", '"\\\\u0000"', ""),
        ("json", "[0.5, 1e-9, 12345]", ""),
        ("json", "[-0.0]", "has the number -0.0"),
        ("json", "[1e300]", "has the number 1e+300"),
        ("json", "[NaN]", "has the number NaN"),
        ("json", '"\\ud800"', "cannot be read"),
    ],
)
def test_a_value_that_postgresql_refuses_or_changes_is_found(
    kind: str, value: Any, what: str
) -> None:
    span = (-(2**31), 2**31 - 1) if kind == "number" else None
    table = Table("t", (Column("c", kind, 5 if kind == "text" else None, span),), is_numbered=False)
    found = [problem.what for problem in canonical_rows.find_problems(table, "sqlite", [value])]
    assert [text[: len(what) + 2] for text in found] == [f"c {what}"] * bool(what)


def test_djangos_dump_is_refused_and_the_right_way_named() -> None:
    with pytest.raises(CommandError, match=r"manage.py move --to URL.*manage.py backup"):
        call_command("dumpdata")
