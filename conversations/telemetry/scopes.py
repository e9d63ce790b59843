"""The scope of a running turn in logs, traces and metrics."""

from __future__ import annotations

from contextlib import ExitStack

from conversations.telemetry.ids import use_log_ids
from conversations.telemetry.metrics import TURNS_LIVE
from conversations.telemetry.spans import trace_span


def enter_turn_scope(*, user: int, conversation: int, turn: int, generation: int) -> ExitStack:
    """Enter the scope of a turn; close it in the same task."""
    scope = ExitStack()
    scope.enter_context(use_log_ids(user=user, conversation=conversation, turn=turn))
    scope.enter_context(trace_span("turn", generation=generation))
    scope.enter_context(TURNS_LIVE.held())
    return scope
