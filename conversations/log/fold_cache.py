"""An in-process cache of folded views: a turn continues the fold of the turn before it.

Most turns of a conversation run in one process, so a turn need not fold the whole path again, nor
its steps read every message. A turn takes its conversation's entry, so two turns never share one;
at its end one is put back. An entry counts only if its last message has the same chain value in the
database, which covers all rows before it; otherwise the path is read from the log. The oldest
entries go first: by total size, and by age.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from conversations.log.loaded_path import Start

#: Bytes of all views together, and the seconds that one stays.
_MOST_BYTES, _SECONDS = 4_000_000, 900.0


@dataclass(frozen=True, slots=True)
class CachedFold:
    """The start of the next fold, and the chain's value at the message that it ends with."""

    start: Start
    chain: str
    #: Entries since the stored checkpoint.
    unsaved: int


class FoldCache:
    """The cached folds by conversation, those of the last turns only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[UUID, tuple[float, CachedFold]] = OrderedDict()
        self._bytes = 0

    def take(self, conversation: UUID) -> CachedFold | None:
        """Return the fold of a conversation and remove it; None if there is none."""
        with self._lock:
            self._drop_old()
            return self._pop(conversation)

    def put(self, conversation: UUID, fold: CachedFold) -> None:
        """Cache the fold of a turn that has ended, unless it is too large."""
        with self._lock:
            self._pop(conversation)
            self._found[conversation] = time.monotonic(), fold
            self._bytes += fold.start.view.size
            self._drop_old()

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._found:
            oldest, (since, _) = next(iter(self._found.items()))
            if self._bytes <= _MOST_BYTES and now - since < _SECONDS:
                break
            self._pop(oldest)

    def _pop(self, conversation: UUID) -> CachedFold | None:
        _, fold = self._found.pop(conversation, (0.0, None))
        if fold is not None:
            self._bytes -= fold.start.view.size
        return fold


#: The cache of this process.
fold_cache = FoldCache()
