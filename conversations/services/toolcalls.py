"""Tool calls: `started` is committed before the call leaves, its outcome after."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from conversations.models import ToolCall
from conversations.ports import ToolDone
from conversations.services.leases import Lease, hold
from conversations.services.log import keep_blob
from conversations.switch import Stopped


@transaction.atomic
def start_tool(*, lease: Lease, tool_use_id: str) -> None:
    hold(lease)
    calls = ToolCall.objects.filter(turn_id=lease.turn_id, tool_use_id=tool_use_id)
    if not calls.filter(state="planned").update(state="started", started_at=Now()):
        raise Stopped("lease")


@transaction.atomic
def finish_tool(*, lease: Lease, tool_use_id: str, done: ToolDone) -> None:
    """Store the whole original result and how the call ended."""
    hold(lease)
    ToolCall.objects.filter(
        turn_id=lease.turn_id, tool_use_id=tool_use_id, state__in=("planned", "started")
    ).update(
        state=done.state,
        output_id=keep_blob(done.content),
        details=dict(done.details),
        ended_at=Now(),
    )
