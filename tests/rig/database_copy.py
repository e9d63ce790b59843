"""Copies and restores a rig's database while none of its processes runs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import psycopg

from tests.rig.installations import Installation

_FILES = ("agentweb.sqlite3", "agentweb.sqlite3-wal", "agentweb.sqlite3-shm")


@dataclass(frozen=True, slots=True)
class DatabaseCopy:
    """The place of one copy."""

    rig: Installation

    async def keep(self) -> None:
        """Kill all processes, copy, and start them again."""
        # Anchored now, not later: anchors would then know entries that the copy lacks.
        await self.rig.acall("tests.rig.site_actions:anchor")
        await asyncio.to_thread(self._between, self._kept_postgres, self._kept_sqlite)

    async def put_back(self) -> None:
        """Kill all processes, restore the copy, and start them again."""
        await asyncio.to_thread(self._between, self._put_postgres, self._put_sqlite)

    def _between(self, postgres: Callable[[], None], sqlite: Callable[[], None]) -> None:
        rig = self.rig
        for process in (*rig.webs, *rig.workers):
            process.kill()
        if "DATABASE_URL" in rig.environment:
            postgres()
        else:
            sqlite()
        rig.heal()

    def _kept_sqlite(self) -> None:
        data = self.rig.folder / "data"
        copy = self.rig.folder / "kept"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in _FILES:
            if (data / name).exists():
                shutil.copy(data / name, copy / name)

    def _put_sqlite(self) -> None:
        data, copy = self.rig.folder / "data", self.rig.folder / "kept"
        for name in _FILES:
            (data / name).unlink(missing_ok=True)
            if (copy / name).exists():
                shutil.copy(copy / name, data / name)

    def _kept_postgres(self) -> None:
        self._run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
            'DROP DATABASE IF EXISTS "{name}_kept"',
            'CREATE DATABASE "{name}_kept" TEMPLATE "{name}"',
        )

    def _put_postgres(self) -> None:
        self._run(
            'DROP DATABASE "{name}" WITH (FORCE)',
            'ALTER DATABASE "{name}_kept" RENAME TO "{name}"',
        )

    def _run(self, *statements: str) -> None:
        root, _, name = self.rig.environment["DATABASE_URL"].rpartition("/")
        with closing(psycopg.connect(f"{root}/postgres", autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement.format(name=name).encode())
