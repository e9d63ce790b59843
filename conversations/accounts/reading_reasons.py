"""Why staff read another person's conversation: asked once for each conversation and session.

The reason is in every entry of the reading log that follows. It is kept in the session, so it ends
with it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from conversations.conf import conf

#: Shortest reason that says anything; longest that fits beside what was read.
LEAST_CHARS, MOST_CHARS = 8, 300
_KEY = "reading_reasons"
#: Conversations of which a session keeps the reason; the oldest is asked for again.
_MOST_KEPT = 50


class ReasonNeeded(Exception):
    """The reader has not said why; the page that asks is shown first."""

    code = "reason_needed"

    def __init__(self, public_id: UUID) -> None:
        super().__init__("a reason is needed before this is shown")
        self.public_id = public_id


def demand_reason(session: Any, public_id: UUID) -> str:
    """Return why the session's person reads a conversation; raises ReasonNeeded. "": not asked."""
    if not conf.reading_reasons:
        return ""
    reason = session.get(_KEY, {}).get(str(public_id))
    if not reason:
        raise ReasonNeeded(public_id)
    return str(reason)


def keep_reason(session: Any, public_id: UUID, reason: str) -> None:
    """Keep the reason for the rest of the session."""
    kept = session.get(_KEY, {})
    kept.pop(str(public_id), None)
    newest = list(kept.items())[1 - _MOST_KEPT :]
    session[_KEY] = {**dict(newest), str(public_id): reason}
