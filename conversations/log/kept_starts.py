"""The folds that this process keeps of the turns it ran: the next turn goes on with the last one's.

A turn that begins folds the whole path, and each step reads every message of it once. Most turns of
a conversation run in one process, so the view of the turn before, with what the steps have learned
from it, saves both. It is taken out by the turn that begins and put back when that turn has ended,
so no two turns ever have the same. It counts only if the log still has the message it ends with,
at the same value of the chain, which covers all rows before. It is a cache: whatever it does not
hold is read from the log.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from conversations.log.loaded_path import Start

#: Bytes of all views together, and the seconds that one is kept.
_MOST_BYTES, _SECONDS = 4_000_000, 900.0


@dataclass(frozen=True, slots=True)
class KeptStart:
    """The start of the next fold, and the chain's value at the message that it ends with."""

    start: Start
    chain: str
    #: Entries since the stored checkpoint.
    unsaved: int


class KeptStarts:
    """The kept folds by conversation, those of the last turns only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[UUID, tuple[float, KeptStart]] = OrderedDict()
        self._bytes = 0

    def take(self, conversation: UUID) -> KeptStart | None:
        """Return what is kept of a conversation; nothing is from then on."""
        with self._lock:
            self._drop_old()
            return self._pop(conversation)

    def keep(self, conversation: UUID, kept: KeptStart) -> None:
        """Keep the fold of a turn that has ended, unless it is too large."""
        with self._lock:
            self._pop(conversation)
            self._found[conversation] = time.monotonic(), kept
            self._bytes += kept.start.view.size
            self._drop_old()

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._found:
            oldest, (since, _) = next(iter(self._found.items()))
            if self._bytes <= _MOST_BYTES and now - since < _SECONDS:
                break
            self._pop(oldest)

    def _pop(self, conversation: UUID) -> KeptStart | None:
        _, kept = self._found.pop(conversation, (0.0, None))
        if kept is not None:
            self._bytes -= kept.start.view.size
        return kept


#: Those of this process.
kept_starts = KeptStarts()
