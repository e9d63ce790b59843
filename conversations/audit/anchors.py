"""Anchors: the ends of all chains, written outside the database every hour.

Somebody who may write the whole database can make its chains consistent again. The anchor file is
out of their reach: on another disk, or on write-once storage. A line is on the disk before the
database stores its number, so after a crash the file may be ahead; that is detected, and accepted
if it matches the database. What writes the file is never run again by itself (`transact`): it would
read its own lines.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from conversations.audit.anchor_checks import find_unmatched
from conversations.audit.anchor_file import (
    SITE_NAME,
    Anchor,
    AnchorError,
    AnchorFile,
    Head,
    find_anchor_path,
    lock_anchor_file,
)
from conversations.log.findings import split_chunks
from conversations.models import AnchorMark, Conversation, SiteChain

logger = logging.getLogger("agentweb.audit")

EVERY = timedelta(hours=1)
#: Most chains in one line.
MOST = 1_000
_OTHER_FILE = "the anchor file is not the one in which the database was anchored last"


@dataclass(slots=True)
class _Pause:
    """Until when this process does not retry after an error that would only repeat."""

    until: float = 0


_pause = _Pause()


def anchor_if_due() -> int:
    """Anchor if an hour has passed; return how many chains. Never raises AnchorError."""
    if find_anchor_path() is None or time.monotonic() < _pause.until:
        return 0
    last = AnchorMark.objects.filter(pk=1).values_list("written_at", flat=True).first()
    # A time far in the future was written by a wrong clock.
    if last is not None and abs(timezone.now() - last) < EVERY:
        return 0
    return _anchor_quietly()


def anchor_at_shutdown() -> int:
    """Anchor what has changed before this process ends; errors are logged."""
    return 0 if find_anchor_path() is None else _anchor_quietly()


def _anchor_quietly() -> int:
    try:
        return anchor_heads()
    except (AnchorError, OSError, DatabaseError) as error:
        _pause.until = time.monotonic() + EVERY.total_seconds()
        logger.error("the chains could not be anchored: %s", error)  # noqa: TRY400 - a sentence
        return 0


@transaction.atomic
def anchor_heads(*, now: datetime | None = None) -> int:
    """Anchor the chains that have grown; return how many. Raises AnchorError."""
    path = find_anchor_path()
    if path is None:
        raise AnchorError("AGENTWEB_ANCHOR_FILE is off: there are no anchors.")
    mark = _lock_mark()
    with lock_anchor_file(path) as file:
        _demand_matching_file(mark, file)
        return _write_anchors(mark, file, now or timezone.now())


@transaction.atomic
def start_new_file(*, reason: str) -> int:
    """Start a new file with all chains, because the previous one is lost, and record the reason."""
    path = find_anchor_path()
    if path is None:
        raise AnchorError("AGENTWEB_ANCHOR_FILE is off: there are no anchors.")
    mark = _lock_mark()
    with lock_anchor_file(path) as file:
        if file.last is not None:
            raise AnchorError(f"{path} holds anchors: move it away first, or go on with it.")
        mark.digest = ""
        Conversation.objects.update(anchored=0)
        SiteChain.objects.update(anchored=0)
        return _write_anchors(mark, file, timezone.now(), reason=reason)


@transaction.atomic
def record_restore(*, reason: str) -> int:
    """Record that a backup was restored; anchors made after the backup no longer count."""
    path = find_anchor_path()
    if path is None:
        raise AnchorError("AGENTWEB_ANCHOR_FILE is off: there are no anchors.")
    mark = _lock_mark()
    with lock_anchor_file(path) as file:
        later, back_to = file.after(mark.number), mark.number
        if not later:
            raise AnchorError("The database is not older than its anchors.")
        # A file that was begun anew after the backup has no line before its first.
        if later[0].before not in ("", mark.digest):
            raise AnchorError(_OTHER_FILE)
        mark.number, mark.digest = later[-1].number, later[-1].digest
        return _write_anchors(mark, file, timezone.now(), reason=reason, back_to=back_to)


def _lock_mark() -> AnchorMark:
    return AnchorMark.objects.select_for_update().get_or_create(pk=1)[0]


def _demand_matching_file(mark: AnchorMark, file: AnchorFile) -> None:
    """Accept lines that a crash left ahead of the mark; raise AnchorError for another file."""
    last = file.last
    if last is None and not mark.number:
        return
    if last is None or last.number < mark.number:
        there = f"ends with anchor {last.number}" if last else "is empty or new"
        raise AnchorError(
            f"the database was anchored as number {mark.number} and the anchor file {there}: put"
            " the file back, or begin anew with manage.py anchor --new-file REASON"
        )
    ahead = file.after(mark.number) if last.number > mark.number else []
    digest = ahead[0].before if ahead else last.digest
    if mark.number and digest != mark.digest:
        raise AnchorError(_OTHER_FILE)
    heads = [head for anchor in ahead for head in anchor.heads]
    if ahead and find_unmatched(heads):
        raise AnchorError(
            f"the database is older than its anchors (anchor {mark.number} of {last.number}): if a"
            " backup was put back, say so with manage.py anchor --restored REASON"
        )
    mark.number, mark.digest = last.number, last.digest


def _write_anchors(
    mark: AnchorMark,
    file: AnchorFile,
    now: datetime,
    *,
    reason: str = "",
    back_to: int | None = None,
) -> int:
    rows = _list_grown()
    for some in list(split_chunks(rows, MOST)) or ([[]] if reason else []):
        heads = tuple(Head(name, links, chain) for _, name, links, chain in some)
        at = now.isoformat(timespec="seconds")
        anchor = file.add(Anchor(mark.number + 1, at, mark.digest, heads, reason, back_to))
        mark.number, mark.digest, reason, back_to = anchor.number, anchor.digest, "", None
        _mark_anchored({key: links for key, _, links, _ in some if key})
        logger.info("anchor %d of %d chains: %s", mark.number, len(heads), mark.digest)
    mark.written_at = now
    mark.save()
    for key, _, links, _ in rows:
        if not key:
            SiteChain.objects.filter(pk=1).update(anchored=links)
    return len(rows)


def _list_grown() -> list[tuple[int, str, int, str]]:
    """Return the chains that have grown: key (0: the site's), name, links, chain."""
    grown = {"links__gt": F("anchored")}
    found = Conversation.objects.filter(**grown).order_by("pk")
    rows = [
        (key, str(name), links, chain)
        for key, name, links, chain in found.values_list("pk", "public_id", "links", "chain")
    ]
    site = SiteChain.objects.filter(**grown).values_list("links", "chain")
    return rows + [(0, SITE_NAME, links, chain) for links, chain in site]


def _mark_anchored(anchored: dict[int, int]) -> None:
    # A conversation that is locked now is anchored the next time.
    rows = Conversation.objects.select_for_update(skip_locked=True, of=("self",))
    some = list(rows.filter(pk__in=anchored).only("pk"))
    for row in some:
        row.anchored = anchored[row.pk]
    Conversation.objects.bulk_update(some, ["anchored"], batch_size=200)
