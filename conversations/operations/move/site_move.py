"""Moves the whole site from SQLite to PostgreSQL or back, and proves that nothing was changed.

Rows keep their keys, because chains and files name them; only sessions stay behind. The source is
read twice: once for digests and for what the other database would refuse, once to copy it. Then the
target is read, and every table must have the digest of the source's. The move is a row of the
site's chain there. Files, keys and anchors stay where they are: both databases are of one site.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from conversations.log.chain import append_row, lock_site_chain
from conversations.models import DatabaseMove
from conversations.operations.db_role import use_databases
from conversations.operations.move import canonical_rows, half_moved
from conversations.operations.move.canonical_rows import Table, Values
from conversations.operations.move.frozen_source import (
    SOURCE,
    Inventory,
    MoveError,
    Tell,
    freeze_source,
    read_inventory,
    read_rows,
)

#: Rows and bytes of one transaction at most, if no row is larger.
BATCH_ROWS, BATCH_BYTES = 1_000, 4_000_000
#: How much longer a move takes than reading the source once: measured (agentweb/bench/results).
TIMES = 5
#: Seconds between two lines about one table.
TOLD_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a move would copy, and about how many seconds it would take."""

    inventory: Inventory
    seconds: float


@contextmanager
def use_target(database: dict[str, Any]) -> Iterator[None]:
    """Make the target Django's database within the block, for one thread; the site's is `source`.

    Raises MoveError where both are of one kind.
    """
    source = read_owned_database()
    if source["ENGINE"] == database["ENGINE"]:
        raise MoveError(
            "the site is on a database of that kind already; to put it on another machine, use"
            " manage.py backup and restore"
        )
    with use_owned({"default": database, SOURCE: source}):
        yield


def read_owned_database() -> dict[str, Any]:
    """Return the site's database as the owner of its tables uses it."""
    return dict(settings.MIGRATE_DATABASE or settings.DATABASES["default"])


@contextmanager
def use_owned(databases: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Make these Django's databases within the block, as the owner of each and without limits."""
    owner = settings.MIGRATE_DATABASE
    with use_databases({name: _lift_limits(one) for name, one in databases.items()}):
        # Migrations run as the owner whose URL was given.
        settings.MIGRATE_DATABASE = None
        ContentType.objects.clear_cache()
        try:
            yield
        finally:
            settings.MIGRATE_DATABASE = owner
            ContentType.objects.clear_cache()


def _lift_limits(database: dict[str, Any]) -> dict[str, Any]:
    """Return the connection without pool and timeouts of statements."""
    found = dict(database)
    if "postgresql" in found["ENGINE"]:
        limits = {"pool", "options"}
        found["OPTIONS"] = {k: v for k, v in found["OPTIONS"].items() if k not in limits}
    return found


def estimate_move(*, tell: Tell) -> Estimate:
    """Read the source once; raises MoveError if it cannot be moved as it is."""
    with freeze_source() as source:
        half_moved.demand_room()
        begun = time.monotonic()
        inventory = read_sound_inventory(source, tell)
        return Estimate(inventory, (time.monotonic() - begun) * TIMES)


def move_site(*, tell: Tell) -> DatabaseMove:
    """Copy the source into the target, compare both, and record it; goes on where it was killed.

    Raises MoveError, and then the target is no site.
    """
    begun_at = timezone.now()
    with freeze_source() as source:
        if is_known := half_moved.is_half_moved():
            tell("Going on with a move that was interrupted.")
        tell("Reading the source for its digests.")
        inventory = read_sound_inventory(source, tell, is_known=is_known)
        if (made := _find_move(inventory)) is not None:
            tell("This move is complete already.")
            return made
        half_moved.begin_move(inventory)
        tell("Copying.")
        for table, facts in zip(canonical_rows.list_tables(), inventory.tables, strict=True):
            _copy_table(source, table, facts.rows, tell)
        tell("Putting foreign keys, triggers and the search index back.")
        half_moved.finish_tables(inventory)
        tell("Reading the copy for its digests.")
        _demand_equal(inventory, read_inventory(connection, tell))
        return _record_move(inventory, source.vendor, begun_at)


def read_sound_inventory(
    source: BaseDatabaseWrapper, tell: Tell, *, is_known: bool = False
) -> Inventory:
    """Return what the source holds; raises MoveError with the rows that PostgreSQL would refuse.

    With `is_known` they are not looked for, which takes as long as all else: a move was begun, so
    there are none in the state whose digests it noted, and it goes on with no other.
    """
    is_checked = connection.vendor == "postgresql" and not is_known
    found = read_inventory(source, tell, is_checked=is_checked)
    if found.problems:
        lines = "\n".join(f"  {problem}" for problem in found.problems)
        raise MoveError(f"these rows cannot be moved; nothing was copied:\n{lines}")
    return found


def _find_move(inventory: Inventory) -> DatabaseMove | None:
    """Return the move of this state of the source, if it is complete."""
    if half_moved.is_half_moved() or not half_moved.holds_site():
        return None
    last = DatabaseMove.objects.order_by("-pk").first()
    return last if last is not None and last.digest == inventory.digest else None


def _copy_table(source: BaseDatabaseWrapper, table: Table, rows: int, tell: Tell) -> None:
    count, last = half_moved.read_note(table.name) or (0, None)
    batch: list[Values] = []
    size, told = 0, time.monotonic()
    for row in read_rows(source, table, last) if count < rows else ():
        values = canonical_rows.read_row(table, source.vendor, row)
        batch.append(values)
        size += sum(len(value) for value in values if isinstance(value, str))
        if len(batch) == BATCH_ROWS or size > BATCH_BYTES:
            half_moved.add_rows(table, batch)
            count, size, batch = count + len(batch), 0, []
            if time.monotonic() - told > TOLD_EVERY:
                tell(f"{table.name}: {count:,} of {rows:,} rows copied")
                told = time.monotonic()
    if batch:
        half_moved.add_rows(table, batch)
    if rows:
        tell(f"{table.name}: all {rows:,} rows copied")


def _demand_equal(source: Inventory, target: Inventory) -> None:
    odd = [
        one.name
        for one, other in zip(source.tables, target.tables, strict=True)
        if (one.rows, one.digest, one.number) != (other.rows, other.digest, other.number)
    ]
    if odd:
        raise MoveError(f"the copy differs in: {', '.join(odd)}; begin with an empty database")


@transaction.atomic
def _record_move(inventory: Inventory, vendor: str, begun_at: datetime) -> DatabaseMove:
    move = DatabaseMove(
        source=vendor,
        target=connection.vendor,
        rows=inventory.rows,
        digest=inventory.digest,
        begun_at=begun_at,
    )
    append_row(move, lock_site_chain())
    half_moved.drop_notes()
    return move
