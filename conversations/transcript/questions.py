"""Open questions as a person sees them: the tool, its destination, its arguments, the reason."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conversations.context.view import wire
from conversations.models import Approval, Turn
from conversations.rendering.visible import reveal_hidden


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for a person; `arguments` are complete, hidden characters made visible."""

    id: int
    tool: str
    digest: str
    reason: str
    destination: str
    arguments: tuple[tuple[str, str], ...]
    sources: str
    expires_at: datetime


def list_open_questions(turns: Iterable[Turn]) -> dict[int, tuple[Question, ...]]:
    """Return the open questions of waiting turns, by the turn's key."""
    waiting = [turn.pk for turn in turns if turn.state == "approval_wait"]
    found: dict[int, tuple[Question, ...]] = {}
    if not waiting:
        return found
    rows = Approval.objects.filter(call__turn__in=waiting, decision=None)
    for row in rows.select_related("call").order_by("call__answer_id", "call__position"):
        turn = row.call.turn_id
        found[turn] = (*found.get(turn, ()), _build_question(row))
    return found


def _build_question(row: Approval) -> Question:
    arguments: dict[str, Any] = wire.decode(row.call.input)
    return Question(
        id=row.pk,
        tool=row.call.name,
        digest=row.arguments_digest,
        reason=row.reason,
        destination=reveal_hidden(row.destination),
        arguments=tuple(
            (reveal_hidden(name), _format_value(value)) for name, value in arguments.items()
        ),
        sources=row.sources,
        expires_at=row.expires_at,
    )


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return reveal_hidden(value)
    return reveal_hidden(json.dumps(value, ensure_ascii=False, indent=2))
