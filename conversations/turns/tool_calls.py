"""Tool calls: `started` is committed before the tool runs, the outcome after.

A call whose worker died may run again unless it may have changed something; it then has the same
key, by which the receiver can recognize the repeat, and is told since when that may be.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

from django.db import connection
from django.db.models.functions import Now

from conversations.agent.ports import ToolDone
from conversations.agent.stop import Stopped
from conversations.db import transact
from conversations.log.leases import NOW, Lease, hold_lease
from conversations.log.page_version import raise_version
from conversations.log.texts import store_blob
from conversations.models import ToolCall
from conversations.telemetry.metrics import is_on
from conversations.turns.metrics import count_tool

#: Raw SQL, because it runs before each tool.
_START = {
    vendor: f"""
UPDATE conversations_toolcall SET state = 'started', started_at = COALESCE(started_at, {now}),
  origin = %s, is_private = %s
WHERE turn_id = %s AND tool_use_id = %s
  AND (state = 'planned' OR state = 'started' AND effect IN ('read', 'keyed'))"""  # noqa: S608 - our own words
    for vendor, now in NOW.items()
}


@transact
def start_tool(
    *, lease: Lease, tool_use_id: str, origin: str = "", is_private: bool = False
) -> str:
    """Commit that the tool starts, and return its key; raises Stopped after a requested stop."""
    if hold_lease(lease).stop_requested_at is not None:
        raise Stopped("user")
    with connection.cursor() as cursor:
        given = origin, is_private, lease.turn_id, tool_use_id
        cursor.execute(_START[connection.vendor], given)
        if not cursor.rowcount:
            raise Stopped("lease")
    raise_version(lease.conversation_id)
    return sha256(f"{lease.public_id} {tool_use_id}".encode()).hexdigest()


def find_first_start(turn_id: int, tool_use_id: str) -> datetime | None:
    """Return when another worker started a call that has not ended; None if none has."""
    calls = ToolCall.objects.filter(turn_id=turn_id, tool_use_id=tool_use_id)
    return calls.filter(state="started").values_list("started_at", flat=True).first()


@transact
def finish_tool(*, lease: Lease, tool_use_id: str, done: ToolDone) -> None:
    """Store the full original result and how the call ended."""
    hold_lease(lease)
    calls = ToolCall.objects.filter(turn_id=lease.turn_id, tool_use_id=tool_use_id)
    is_closed = calls.filter(state__in=("planned", "started")).update(
        state=done.state,
        output_id=store_blob(done.content),
        details=dict(done.details),
        ended_at=Now(),
    )
    raise_version(lease.conversation_id)
    if is_closed and is_on():
        count_tool(name=calls.values_list("name", flat=True).get(), state=done.state)
