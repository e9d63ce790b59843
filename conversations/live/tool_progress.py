"""What running tools say of how far they are: shown live, and never stored.

A tool may speak as often as it likes, from any thread: only its last words are kept, one frame of
them goes out at a time, and no more once the call has ended. A page that comes later, and a card
that is rendered anew meanwhile, are given the last words again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from conversations.agent.events import ToolMoved
from tools.framework.clean_text import clean_text

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds between two frames of one call, and characters of its words.
PACE, MOST = 0.4, 200


class Progress:
    """The running calls of one turn; `tell` shows an event, on the loop it was made on."""

    def __init__(self, tell: Callable[[ToolMoved], None]) -> None:
        self._tell, self._loop = tell, asyncio.get_running_loop()
        self._running: set[str] = set()
        self._latest: dict[str, str | float] = {}
        self._due: set[str] = set()
        self._said: set[str] = set()

    def begin(self, tool_use_id: str) -> Callable[[str | float], None]:
        """Give what a call tells its progress to: words, or a share from 0 to 1."""
        self._running.add(tool_use_id)
        return partial(self._take, tool_use_id)

    def end(self, tool_use_id: str) -> None:
        self._running.discard(tool_use_id)
        self._latest.pop(tool_use_id, None)
        if tool_use_id in self._said:
            self._said.discard(tool_use_id)
            self._tell(ToolMoved(tool_use_id, "", None))

    def _take(self, tool_use_id: str, said: str | float) -> None:
        if tool_use_id in self._running:
            self._latest[tool_use_id] = said
            if tool_use_id not in self._due:
                self._due.add(tool_use_id)
                self._loop.call_soon_threadsafe(self._show, tool_use_id)

    def _show(self, tool_use_id: str) -> None:
        self._due.discard(tool_use_id)
        said = self._latest.pop(tool_use_id, None)
        if said is None or tool_use_id not in self._running:
            return
        self._said.add(tool_use_id)
        self._tell(_event(tool_use_id, said))
        self._due.add(tool_use_id)
        self._loop.call_later(PACE, self._show, tool_use_id)


def _event(tool_use_id: str, said: str | float) -> ToolMoved:
    if isinstance(said, str):
        return ToolMoved(tool_use_id, " ".join(clean_text(said[: 2 * MOST]).split())[:MOST], None)
    # What is no share of anything is shown as nothing or everything.
    return ToolMoved(tool_use_id, "", round(100 * min(max(said, 0.0), 1.0)) if said == said else 0)  # noqa: PLR0124
