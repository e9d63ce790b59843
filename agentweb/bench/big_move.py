"""A large site moved from SQLite to PostgreSQL and back, killed at random moments on the way.

The site is one with a true record (`made_site`). What arrives is compared three times: by the
digests of the move itself, by sums that sqlite3 and PostgreSQL compute alone (`table_sums`), and by
the pages and exports that people read. `verify` and `ledger` are run on all three databases.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentweb.bench import killed_move, table_sums
from agentweb.bench.killed_move import Moved, measure_command
from agentweb.bench.made_site import SETTINGS
from agentweb.bench.processes import clean_environment
from agentweb.bench.site_pages import LEDGER
from agentweb.bench.site_under_test import MODEL, make_postgres, run_emulator

#: The name of the README's marks.
MARKS = "move"
_FILE, _KEY = "agentweb.sqlite3", "only to move a site of a measure, " * 2
_COUNTED = ("conversation", "apicall", "transformation", "message", "ledgerentry")
_MEGABYTE = 1_000_000
Row = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How large the site is, how often its move is killed, and of how many pages are read."""

    conversations: int
    calls: int
    kills: int
    pages: int
    seed: int


class Measure:
    """One run in a folder, which keeps the site that was made there before."""

    def __init__(self, folder: Path, wanted: Wanted, say: Say) -> None:
        self._folder, self._wanted, self._say = folder, wanted, say
        self._chance = random.Random(wanted.seed)  # noqa: S311 - moments that can be had again
        self._differences: list[str] = []
        self._made: Row = {}
        self._site = clean_environment(
            AGENTWEB_DATA_DIR=str(folder),
            SECRET_KEY=_KEY,
            AGENTWEB_LOG_LEVEL="WARNING",
            DJANGO_SETTINGS_MODULE="agentweb.settings",
        )

    def run(self) -> Row:
        """Make the site if the folder has none, move it there and back, and compare all three."""
        self._made = self._make()
        found: Row = {"made": self._made}
        path, back = self._folder / _FILE, self._folder / "back.sqlite3"
        with ExitStack() as stack:
            url = make_postgres(stack, "moved")
            there = self._site | {"DATABASE_URL": url}
            found["source"] = self._check("source", self._site)
            half = self._wanted.kills // 2
            moved = self._move(self._site, url, self._wanted.kills - half)
            found["there"] = _describe(moved)
            self._demand("PostgreSQL", found["source"]["said"], moved)
            self._compare_sums("PostgreSQL", path, url=url)
            moved = self._move(there, f"sqlite://{back}", half)
            found["back"] = _describe(moved)
            self._demand("SQLite", found["source"]["said"], moved)
            self._compare_sums("SQLite", path, url=url, back=back)
            sites = (self._site, there, self._site | {"DATABASE_URL": f"sqlite://{back}"})
            found["pages"] = self._compare_pages(sites)
        back.unlink(missing_ok=True)
        found["differences"] = self._differences
        return found

    def _make(self) -> Row:
        if not (found := self._count()).get("conversation"):
            with run_emulator(0) as api:
                self._make_here(api)
            found = self._count()
        self._say(
            "{conversation:,} conversations, {apicall:,} calls, {transformation:,}"
            " transformations, {rows:,} rows".format(**found)
        )
        return found

    def _count(self) -> Row:
        """Count what the site has; nothing where there is none."""
        path = self._folder / _FILE
        if not path.exists():
            return {}
        with closing(sqlite3.connect(path)) as database:
            names = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%'"
            ).fetchall()
            counts = {
                name.removeprefix("conversations_"): int(
                    database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
                )
                for (name,) in names
            }
        found = {name: counts[name] for name in _COUNTED}
        return found | {"rows": sum(counts.values()), "bytes": path.stat().st_size}

    def _make_here(self, api: str) -> None:
        own = SETTINGS | {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": api}
        own |= {"AGENTWEB_MODEL": MODEL, "AGENTWEB_TITLE_MODEL": "off"}
        size = (str(self._wanted.conversations), str(self._wanted.calls))
        if not (self._folder / _FILE).exists():
            self._run(self._site, "manage.py", "migrate")
        self._run(self._site | own, "-m", "agentweb.bench.made_site", *size)

    def _check(self, name: str, site: dict[str, str]) -> Row:
        """Verify the record that is moved: what is not true proves nothing."""
        verified = measure_command(["manage.py", "verify"], self._folder, site, f"verify-{name}")
        said = verified["said"].strip().splitlines()[-1]
        self._say(f"the record of the {name}: {said}")
        if verified["code"]:
            self._differences.append(f"the record of the {name}: {said}")
        return _round(verified) | {"said": said}

    def _move(self, site: dict[str, str], url: str, kills: int) -> Moved:
        rows = min(1_000, max(10, self._wanted.conversations))
        batches = self._made["rows"] // rows
        moments = killed_move.plan_kills(kills, batches, self._chance)
        command = ["-m", "agentweb.bench.told_move", url, str(rows)]
        moved = killed_move.move_site(command, self._folder, site, moments, self._say)
        self._say(
            f"moved after {len(moved.kills)} kills; the last run took {moved.last:.0f} s of"
            f" processor time, and {moved.peak / _MEGABYTE:.0f} MB"
        )
        return moved

    def _demand(self, where: str, said: str, moved: Moved) -> None:
        """Note a difference where the verification behind the move does not say the same."""
        if said not in moved.said:
            lines = moved.said.strip().splitlines()
            self._differences.append(f"verification on {where}: {lines[-2:]}")

    def _compare_sums(self, where: str, path: Path, *, url: str, back: Path | None = None) -> None:
        types = table_sums.read_types(url)
        if back is None:
            before = table_sums.sum_sqlite(path, types)
            after = table_sums.sum_postgresql(url, types)
        else:
            before = table_sums.sum_sqlite(path, types, has_json=True)
            after = table_sums.sum_sqlite(back, types, has_json=True)
        odd = table_sums.list_differences(before, after)
        self._differences += [f"{name} on {where}" for name in odd]
        rows = sum(count for count, _ in before.values())
        self._say(f"{rows:,} rows of {len(before)} tables on {where}: {len(odd)} tables differ")

    def _compare_pages(self, sites: tuple[dict[str, str], ...]) -> int:
        """Read the pages and the ledger of all sites; return how many."""
        size = (str(self._wanted.pages), str(self._wanted.seed))
        command = ("-m", "agentweb.bench.site_pages", *size)
        first, *others = (json.loads(self._run(site, *command)) for site in sites)
        for where, other in zip(("PostgreSQL", "SQLite"), others, strict=True):
            odd = [key for key in first.keys() | other.keys() if first.get(key) != other.get(key)]
            self._differences += [f"{key} on {where}" for key in sorted(odd)]
            self._say(f"{len(first):,} pages and exports read, {len(odd)} differ on {where}")
        self._differences += first.get(LEDGER, [])
        return len(first)

    def _run(self, site: dict[str, str], *command: str) -> str:
        done = measure_command(command, self._folder, site, Path(command[1]).name)
        if done["code"]:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done['said'][-2_000:]}")
        return str(done["said"])


def _describe(moved: Moved) -> Row:
    found: Row = {"kills": moved.kills, "processor": round(moved.processor)}
    found["last"] = round(moved.last)
    found["peak"] = round(moved.peak / _MEGABYTE)
    found["verified_peak"] = round(moved.verified_peak / _MEGABYTE)
    return found


def _round(measured: Row) -> Row:
    peak = round(measured["peak"] / _MEGABYTE)
    return {"processor": round(measured["processor"]), "peak": peak}


def render(found: Row) -> str:
    """Write the figures for the README."""
    made, source, kills = found["made"], found["source"], _count_kills(found)
    lines = [
        f"Measured by `manage.py bench move` on {found['machine']['date'][:10]}:"
        f" {made['conversation']:,} conversations, {made['apicall']:,} calls,"
        f" {made['transformation']:,} transformations, {made['rows'] / 1e6:.1f} million rows, a"
        f" file of {made['bytes'] / 1e9:.1f} GB. {len(found['differences'])} differences in the"
        f" verification, the ledger, the sums of all tables, and {found['pages']:,} pages and"
        f" exports. Killed {sum(kills.values())} times: "
        + ", ".join(f"{count} while {part}" for part, count in kills.items())
        + ".",
        "",
        "| | processor s, last run | all runs | MB of any run at most | of the last, verified |",
        "|---|---:|---:|---:|---:|",
        f"| `verify` before | {source['processor']:,} | | | {source['peak']:,} |",
    ]
    for name, words in (("there", "SQLite to PostgreSQL"), ("back", "PostgreSQL to SQLite")):
        row = found[name]
        lines.append(
            f"| {words}, verified | {row['last']:,} | {row['processor']:,} | {row['peak']:,}"
            f" | {row['verified_peak']:,} |"
        )
    return "\n".join(lines)


def _count_kills(found: Row) -> dict[str, int]:
    kills = [*found["there"]["kills"], *found["back"]["kills"]]
    return {part: kills.count(part) for part in dict.fromkeys(kills)}
