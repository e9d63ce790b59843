"""Proof that erased text is gone: what was erased is searched for, and the result recorded.

The record is a row of the site's chain for each erasure. Once a search that included a backup has
found nothing, the digests are deleted too: there is nothing left to search for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from django.utils import timezone

from conversations.db import transact
from conversations.log.chain import append_rows, lock_site_chain
from conversations.models import ErasedDigests, ErasureProof
from conversations.operations.leftovers import backups, phrases, places
from conversations.operations.leftovers.postgres_files import search_postgres
from conversations.operations.leftovers.purge import PurgeError, purge_database, rewrite_database

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
    last = rows.exclude(purged_at=None).order_by("-purged_at").first()
    is_early = (
        last is not None
        and last.purged_at is not None
        and (last.purged_at > timezone.now() - PAUSE)
    )
    if is_early or not rows.filter(purged_at=None).exists():
        return
    try:
        purge_erased()
    except PurgeError as error:
        places.logger.warning("erased text was not removed from the index yet: %s", error)


def prove_erasures(*, backup: Path | None = None) -> ProofResult:
    """Search all places for what was erased and record the result; raises BackupError."""
    rows = list(ErasedDigests.objects.select_related("erasure").order_by("pk"))
    sought = [
        (phrases.unpack_digests(row.phrases), phrases.unpack_digests(row.words)) for row in rows
    ]
    wanted = places.Wanted(
        phrases.read_key(),
        set().union(*(phrases_of for phrases_of, _ in sought)),
        set().union(*(words for _, words in sought)),
    )
    found = _search_everywhere(wanted, backup)
    result = ProofResult(len(rows), len(wanted.phrases), len(wanted.words), len(wanted.kept), found)
    _record(rows, sought, result, backup)
    return result


def _search_everywhere(wanted: places.Wanted, backup: Path | None) -> list[places.Place]:
    found = [places.note_rows(wanted)]
    if connection.vendor == "sqlite":
        database = Path(str(connection.settings_dict["NAME"]))
        found += places.search_sqlite(wanted, database, "database")
    else:
        found += search_postgres(wanted)
    found += [places.search_folder(wanted), *places.search_redis(wanted)]
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
