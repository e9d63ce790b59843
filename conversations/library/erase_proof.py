"""Proof that erased text is gone: what was erased is searched for, and the result recorded.

The record is a row of the site's chain for each erasure. Once a search that included a backup has
found nothing, the digests are deleted too: there is nothing left to search for. Digests that were
made with another SECRET_KEY cannot be searched for: they stay, and no result is recorded for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from conversations.db import transact
from conversations.log.chain import append_rows, lock_site_chain
from conversations.models import ErasedDigests, ErasureProof
from conversations.operations.leftovers import backups, phrases, places
from conversations.operations.leftovers.postgres_files import search_postgres
from conversations.operations.leftovers.purge import (
    PurgeError,
    may_purge,
    purge_database,
    rewrite_database,
)

#: Between two cleanings by the sweep.
PAUSE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What one search found, over all erasures."""

    erasures: int
    phrases: int
    words: int
    #: Digests that rows still hold, which is no leftover: the same words stand elsewhere.
    kept: int
    places: list[places.Place]

    @property
    def found(self) -> int:
        """Return how many digests, and free pages with old bytes, were found."""
        return sum(len(place.found or ()) + place.dirty for place in self.places)

    @property
    def unread(self) -> int:
        return sum(place.found is None for place in self.places)


def purge_erased(*, is_rewritten: bool = False) -> None:
    """Clean the database's files of what was erased and note when; raises PurgeError."""
    keys = list(ErasedDigests.objects.filter(purged_at=None).values_list("pk", flat=True))
    if is_rewritten:
        rewrite_database()
    else:
        purge_database()
    ErasedDigests.objects.filter(pk__in=keys).update(purged_at=timezone.now())


def purge_if_due() -> None:
    """Clean the database if something was erased since, once an hour at most."""
    rows = ErasedDigests.objects
    now = timezone.now()
    recent = Q(purged_at__gt=now - PAUSE) | Q(tried_at__gt=now - PAUSE)
    if rows.filter(recent).exists() or not rows.filter(purged_at=None).exists():
        return
    if not may_purge():
        # Processes that know the tables' owner do it, or `erase --prove` there; doctor tells.
        return
    # Noted before it begins, so that neither another process nor a failure repeats it at once.
    if not rows.filter(purged_at=None).exclude(recent).update(tried_at=now):
        return
    try:
        purge_erased()
    except PurgeError as error:
        places.logger.warning("erased text was not removed from the index yet: %s", error)


def count_uncleaned(*, before: datetime) -> int:
    """Count what was erased before a time and is still in the database's files."""
    return ErasedDigests.objects.filter(purged_at=None, erasure__erased_at__lt=before).count()


def prove_erasures(*, backup: Path | None = None) -> ProofResult:
    """Search all places for what was erased and record the result; raises BackupError."""
    key = phrases.read_key()
    every = ErasedDigests.objects.select_related("erasure").order_by("pk")
    rows = list(every.filter(key=phrases.fingerprint_key(key)))
    others = every.count() - len(rows)
    sought = [
        (phrases.unpack_digests(row.phrases), phrases.unpack_digests(row.words)) for row in rows
    ]
    wanted = places.Wanted(
        key,
        set().union(*(phrases_of for phrases_of, _ in sought)),
        set().union(*(words for _, words in sought)),
    )
    found = _search_everywhere(wanted, backup)
    result = ProofResult(len(rows), len(wanted.phrases), len(wanted.words), len(wanted.kept), found)
    _record(rows, sought, result, backup)
    if others:
        note = f"{others} were noted with another SECRET_KEY"
        result.places.append(places.Place("erasures", None, note=note))
    return result


def _search_everywhere(wanted: places.Wanted, backup: Path | None) -> list[places.Place]:
    found = [places.note_rows(wanted)]
    if connection.vendor == "sqlite":
        database = Path(str(connection.settings_dict["NAME"]))
        found += places.search_sqlite(wanted, database, "database")
    else:
        found += search_postgres(wanted)
    found += [*places.search_folder(wanted), *places.search_redis(wanted)]
    if backup is not None:
        found += backups.search_backup(wanted, backup)
    return found


@transact
def _record(
    rows: list[ErasedDigests],
    sought: list[tuple[set[bytes], set[bytes]]],
    result: ProofResult,
    backup: Path | None,
) -> None:
    proofs = []
    for row, (phrases_of, words) in zip(rows, sought, strict=True):
        told = [_describe(place, phrases_of | words) for place in result.places]
        proofs.append(
            ErasureProof(
                erasure=row.erasure,
                phrases=len(phrases_of),
                words=len(words),
                places=told,
                found=sum(place["found"] or 0 for place in told),
                backup=backup.name if backup else "",
            )
        )
    append_rows(proofs, lock_site_chain())
    if backup is not None and not result.found and not result.unread:
        ErasedDigests.objects.filter(pk__in=[row.pk for row in rows]).delete()


def _describe(place: places.Place, digests: set[bytes]) -> dict[str, Any]:
    found = None if place.found is None else len(place.found & digests) + place.dirty
    return {"place": place.name, "bytes": place.bytes, "found": found, "note": place.note}
