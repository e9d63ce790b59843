"""Metrics of turns, calls, tools and reductions.

Events are counted where they are stored, after the commit, so that nothing is counted that did not
happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from conversations.agent.ports import Refused
from conversations.models import ApiCall, ApiResult, Transformation
from conversations.telemetry import metrics
from tools.framework.registry import TOOLS

#: Labels for tools of MCP servers, and for names that do not exist.
_OF_SERVERS, _UNKNOWN = "mcp", "unknown"


def _count_on_commit(count: Callable[[], None]) -> None:
    if metrics.is_on():
        transaction.on_commit(count)


def count_turn(*, state: str, reason: str) -> None:
    """Count a turn that reached its final state."""
    _count_on_commit(lambda: metrics.TURNS_ENDED.add(state=state, reason=reason))


def count_takeover(*, state: str) -> None:
    """Count a turn that was taken from a dead worker, and its new state."""
    _count_on_commit(lambda: metrics.TAKEOVERS.add(state=state))


def count_call(*, call: ApiCall, result: ApiResult) -> None:
    """Count a closed call: how it ended, how long it took, what it cost."""
    _count_on_commit(lambda: _count_call(call, result))


def _count_call(call: ApiCall, result: ApiResult) -> None:
    names: dict[str, Any] = {"purpose": call.purpose, "model": call.model}
    metrics.CALLS.add(**names, status=result.status)
    metrics.COST.add(result.cost_micros, **names)
    metrics.CALL_SECONDS.observe(result.duration_ms / 1000, **names)
    if result.first_event_ms is not None:
        metrics.FIRST_EVENT_SECONDS.observe(result.first_event_ms / 1000, **names)
    for kind in ("input", "output", "cache_read", "cache_write"):
        metrics.TOKENS.add(getattr(result, f"{kind}_tokens") or 0, **names, kind=kind)


def count_tool(*, name: str, state: str) -> None:
    """Count a tool call that ended."""
    known = name if name in TOOLS else _OF_SERVERS if name.startswith("mcp__") else _UNKNOWN
    _count_on_commit(lambda: metrics.TOOL_CALLS.add(tool=known, state=state))


def count_transformation(*, transformation: Transformation, **_: object) -> None:
    """Count a reduction; receiver of `transformation_recorded`, sent after the commit."""
    metrics.TRANSFORMATIONS.add(kind=transformation.kind, outcome=transformation.outcome)


@contextmanager
def count_refusals() -> Iterator[None]:
    """Count a call that is refused within the block, of which nothing is committed."""
    try:
        yield
    except Refused as refused:
        metrics.REFUSALS.add(code=refused.code)
        raise
