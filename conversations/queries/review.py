"""A conversation as reviewers read it: every message of the log as text, nothing rendered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from conversations.context import wire
from conversations.models import Conversation
from conversations.queries.reductions import block_text
from conversations.queries.requests import DAMAGE

PAGE = 50


@dataclass(frozen=True, slots=True)
class Part:
    """One content block: its type, and its text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One message; `turn` is the key of its turn."""

    seq: int
    kind: str
    created_at: datetime
    turn: int | None
    parts: tuple[Part, ...]


def messages(conversation: Conversation, after: int) -> list[Reading]:
    """Give a page of messages behind a number."""
    rows = conversation.messages.filter(seq__gt=after).order_by("seq")[:PAGE]
    return [
        Reading(row.seq, row.kind, row.created_at, row.turn_id, parts(row.content)) for row in rows
    ]


def parts(content: str) -> tuple[Part, ...]:
    """Give content blocks as text; content that is damaged as it stands."""
    try:
        return tuple(Part(block["type"], block_text(block)) for block in wire.decode(content))
    except DAMAGE:
        return (Part("damaged", content),)
