"""Databases with all their tables, copied instead of migrated.

Migrating takes seconds of processor time. A run does it once for the processes that its tests
start; concurrent runs share one, in the folder that AGENTWEB_TEST_PREPARED names, and Django's own
test database is copied from it as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg

from tests.rig.forking import clean
from tests.support import servers

SHARED = os.environ.get("AGENTWEB_TEST_PREPARED")
TEMPLATE = "prepared"
PROJECT = Path(__file__).resolve().parents[2]


@functools.cache
def sqlite() -> Path:
    """Return an empty database with the current tables."""
    with _alone() as folder:
        path = folder / "sqlite" / "agentweb.sqlite3"
        if not path.exists():
            making = folder / "sqlite.part"
            _migrate(making)
            making.rename(path.parent)
    return path


def postgres(server: servers.Server) -> str:
    """Return the URL of a new database with the current tables."""
    name, root = f"rig_{uuid4().hex[:12]}", server.url.rpartition("/")[0]
    on(server)
    with psycopg.connect(f"{root}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"'.encode())
    return f"{root}/{name}"


_has: set[int] = set()


def on(server: servers.Server) -> str:
    """Create the database that others on this server are copied from; return its name."""
    if server.port not in _has:
        url = servers.make_database(server, TEMPLATE)
        with _alone() as folder:
            dump = folder / "postgres.sql"
            if dump.exists():
                _tool(server, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump), url)
            else:
                _migrate(folder / "postgres", DATABASE_URL=url)
                _tool(server, "pg_dump", "-O", "-f", f"{dump}.part", url)
                Path(f"{dump}.part").rename(dump)
        _has.add(server.port)
    return TEMPLATE


@contextlib.contextmanager
def _alone() -> Iterator[Path]:
    """Yield the folder of prepared databases; other runs wait."""
    folder = Path(SHARED) if SHARED else _own()
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder


@functools.cache
def _own() -> Path:
    folder = servers.folder_of("prepared")
    servers.at_end(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


def _migrate(data: Path, **extra: str) -> None:
    own = {"AGENTWEB_DATA_DIR": str(data), "SECRET_KEY": "only to prepare, " * 4}
    data.mkdir(mode=0o700, exist_ok=True)
    _run(sys.executable, "manage.py", "migrate", "--verbosity", "0", **own | extra)


def _tool(server: servers.Server, name: str, *arguments: str) -> None:
    _run(str(Path(server.command[0]).with_name(name)), *arguments)


def _run(*command: str, **extra: str) -> None:
    done = subprocess.run(
        command, check=False, cwd=PROJECT, env=clean() | extra, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-3_000:]}")
