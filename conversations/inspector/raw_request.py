"""The raw request: exact bytes to keep, and a readable form within a limit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from conversations.context.view import wire
from conversations.inspector.sent_messages import unless_damaged
from conversations.log.rebuild import Rebuilt, rebuilt
from conversations.models import ApiCall

#: Characters of the readable form, and of one string in it.
MOST, LONGEST = 200_000, 2_000


@dataclass(frozen=True, slots=True)
class Request:
    """`text` is for people: long strings are cut and say so; `rebuilt` has what was sent."""

    rebuilt: Rebuilt
    is_same: bool
    text: str
    cut: int
    headers: str
    problem: str


def request(row: ApiCall) -> Request:
    """Rebuild the body of a call and make it readable; damage is told, not raised."""
    body = rebuilt(row)
    is_same = not body.problem and (body.digest, body.size) == (row.body_digest, row.body_bytes)
    if body.problem:
        return Request(body, False, "", 0, row.envelope.headers, body.problem)
    shown, problem = unless_damaged(lambda: _pretty(wire.decode(body.body)))
    text = shown or ""
    left = max(0, len(text) - MOST)
    return Request(body, is_same, text[:MOST], left, row.envelope.headers, problem)


def _pretty(value: Any) -> str:
    return json.dumps(_shorter(value), ensure_ascii=False, indent=2)


def _shorter(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST:
            left = len(value) - LONGEST
            return f"{value[:LONGEST]}… (and {left:,} characters more)"
        case list():
            return [_shorter(item) for item in value]
        case dict():
            return {name: _shorter(item) for name, item in value.items()}
        case _:
            return value
