"""A running turn as logs, traces and metrics see it, from its claim to the end of its stage."""

from __future__ import annotations

from contextlib import ExitStack

from conversations.telemetry.ids import logged
from conversations.telemetry.metrics import TURNS_LIVE
from conversations.telemetry.spans import span


def turn_scope(*, user: int, conversation: int, turn: int, generation: int) -> ExitStack:
    """Begin it; closed in the same task."""
    scope = ExitStack()
    scope.enter_context(logged(user=user, conversation=conversation, turn=turn))
    scope.enter_context(span("turn", generation=generation))
    scope.enter_context(TURNS_LIVE.held())
    return scope
