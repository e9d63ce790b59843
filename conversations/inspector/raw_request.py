"""The raw request: the exact bytes for download, and a readable form within a limit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from conversations.context.view import wire
from conversations.inspector.sent_messages import catch_damage
from conversations.log.rebuild import RebuiltRequest, rebuild_request
from conversations.models import ApiCall

#: Characters of the readable form, and of one string in it.
MOST, LONGEST = 200_000, 2_000


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request; in `text` long strings are cut and say so, `rebuilt` has the exact body."""

    rebuilt: RebuiltRequest
    is_same: bool
    text: str
    cut: int
    headers: str
    problem: str


def read_raw_request(row: ApiCall) -> RawRequest:
    """Rebuild the body of a call and make it readable; damage becomes `problem`."""
    body = rebuild_request(row)
    is_same = not body.problem and (body.digest, body.size) == (row.body_digest, row.body_bytes)
    if body.problem:
        return RawRequest(body, False, "", 0, row.envelope.headers, body.problem)
    shown, problem = catch_damage(lambda: _format_json(wire.decode(body.body)))
    text = shown or ""
    left = max(0, len(text) - MOST)
    return RawRequest(body, is_same, text[:MOST], left, row.envelope.headers, problem)


def _format_json(value: Any) -> str:
    return json.dumps(_shorten_strings(value), ensure_ascii=False, indent=2)


def _shorten_strings(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST:
            left = len(value) - LONGEST
            return f"{value[:LONGEST]}… (and {left:,} characters more)"
        case list():
            return [_shorten_strings(item) for item in value]
        case dict():
            return {name: _shorten_strings(item) for name, item in value.items()}
        case _:
            return value
