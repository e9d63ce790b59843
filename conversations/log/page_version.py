"""The page version of a conversation: by it a page knows whether it is up to date.

`Conversation.version` is raised by every transaction that changes something the page shows: an
entry of the log, a turn's state, a tool call, a waiting message, the title, the shown path. The row
is locked while it is raised, so versions are committed in order. The text of a running answer does
not raise it, because it has positions of its own; nor does spending elsewhere, which belongs to the
person.

A transaction that raises the version is followed by the event that shows the change
(`live/publish.py`), with the step from the version before to the one after. A page at the version
before takes the event's frame, a page at the version after ignores it, and any other page missed
something and gets a snapshot. Callers do not pass steps on: the steps that a context (a request, a
turn) has committed are kept here until it publishes.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from functools import partial
from itertools import islice
from threading import Lock

from django.db import connection, transaction

from conversations.log.prepared_rows import read_rows, shape_of
from conversations.models import Conversation

#: The version before a change and the one after it; equal if nothing was raised.
VersionStep = tuple[int, int]
#: Most conversations whose steps one context keeps; the oldest, never published, are dropped.
MOST = 100
#: Most ids in one statement; SQLite allows some thousands.
MOST_IDS = 500

_RAISE = "UPDATE conversations_conversation SET version = version + 1 WHERE id = %s RETURNING "


def join_steps(first: VersionStep | None, then: VersionStep | None) -> VersionStep | None:
    """Return the step over both; the later one if another context's is between them.

    A page without that one needs a snapshot.
    """
    if first is None or then is None:
        return first or then
    return (first[0], then[1]) if first[1] == then[0] else then


class _Unpublished:
    """The steps of one context by conversation. Database threads add to it."""

    def __init__(self) -> None:
        self._steps: dict[int, VersionStep] = {}
        self._lock = Lock()

    def add(self, conversation_id: int, after: int) -> None:
        with self._lock:
            step = after - 1, after
            self._steps[conversation_id] = (
                join_steps(self._steps.get(conversation_id), step) or step
            )
            if len(self._steps) > MOST:
                del self._steps[next(iter(self._steps))]

    def take(self, conversation_id: int) -> VersionStep | None:
        with self._lock:
            return self._steps.pop(conversation_id, None)


_unpublished: ContextVar[_Unpublished] = ContextVar("unpublished")


def keep_own_steps() -> None:
    """Keep the steps of this context apart from those of the context that started it."""
    _unpublished.set(_Unpublished())


def take_step(conversation_id: int) -> VersionStep | None:
    """Return and forget the step that this context committed since its last call of this."""
    kept = _unpublished.get(None)
    return kept.take(conversation_id) if kept is not None else None


def raise_version(conversation_id: int) -> int:
    """Raise the version in the transaction of a change, and return it; locks the row."""
    with connection.cursor() as cursor:
        cursor.execute(_RAISE + "version", [conversation_id])
        found = cursor.fetchone()
    version = int(found[0]) if found else 0
    note_step(conversation_id, version)
    return version


def lock_and_raise(conversation_id: int) -> Conversation:
    """Lock a conversation as chain.py does and raise its version, in one statement."""
    shape = shape_of(Conversation)
    [row] = read_rows(shape, _RAISE + shape.columns(), [conversation_id])
    note_step(row.pk, row.version)
    return row


def raise_locked(row: Conversation) -> None:
    """Raise the version of a locked row; the caller saves the row in this transaction."""
    row.version += 1
    note_step(row.pk, row.version)


def note_step(conversation_id: int, version: int) -> None:
    """Keep the step to this version, once committed, until this context publishes it."""
    transaction.on_commit(partial(_note, conversation_id, version))


def _note(conversation_id: int, version: int) -> None:
    kept = _unpublished.get(None)
    if kept is None:
        kept = _Unpublished()
        _unpublished.set(kept)
    kept.add(conversation_id, version)


def read_versions(conversation_ids: Collection[int]) -> dict[int, int]:
    """Return the versions of these conversations; those in the trash, or erased, have none."""
    found: dict[int, int] = {}
    left = iter(conversation_ids)
    while ids := list(islice(left, MOST_IDS)):
        rows = Conversation.objects.filter(pk__in=ids, deleted_at=None)
        found.update(rows.values_list("pk", "version"))
    return found
