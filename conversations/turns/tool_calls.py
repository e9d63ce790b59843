"""Tool calls: `started` is committed before the tool runs, the outcome after.

A call whose worker died may run again unless it may have changed something; it then has the same
key, by which the receiver can recognize the repeat.
"""

from __future__ import annotations

from hashlib import sha256

from django.db.models import Q
from django.db.models.functions import Now

from conversations.agent.ports import ToolDone
from conversations.agent.stop import Stopped
from conversations.db import transact
from conversations.log.leases import Lease, hold_lease
from conversations.log.page_version import raise_version
from conversations.log.texts import store_blob
from conversations.models import ToolCall
from conversations.telemetry.metrics import is_on
from conversations.turns.metrics import count_tool


@transact
def start_tool(
    *, lease: Lease, tool_use_id: str, origin: str = "", is_private: bool = False
) -> str:
    """Commit that the tool starts, and return its key; raises Stopped after a requested stop."""
    hold_lease(lease)
    calls = ToolCall.objects.filter(turn_id=lease.turn_id, tool_use_id=tool_use_id)
    may_leave = Q(state="planned") | Q(state="started", effect__in=("read", "keyed"))
    came = {"origin": origin, "is_private": is_private}
    left = {"state": "started", "started_at": Now(), **came}
    if not calls.filter(may_leave, turn__stop_requested_at=None).update(**left):
        raise Stopped("user" if calls.filter(may_leave).exists() else "lease")
    raise_version(lease.conversation_id)
    return sha256(f"{lease.public_id} {tool_use_id}".encode()).hexdigest()


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
