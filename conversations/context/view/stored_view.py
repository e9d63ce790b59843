"""A view as text, so that a long history need not be folded again from its first entry.

A message whose content is unchanged is stored as the number of its entry alone: the log has the
content. So the text is about as long as what transformations wrote, and `read_view` needs the
entries in view, not those that were removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.context.view.view import Message, Trail, View

#: Reads the messages of these entries as they were stored.
ReadMessages = Callable[[list[int]], Mapping[int, Message]]


def write_view(view: View, originals: Mapping[int, Message]) -> str:
    """Write a view; messages equal to their original are referenced."""
    rows = [_write_message(message, originals.get(message.seq)) for message in view.messages]
    return wire.encode([view.edits, list(view.cleared), rows])


def _write_message(message: Message, original: Message | None) -> list[object]:
    if original == message:
        return [message.seq]
    return [message.seq, message.kind, message.content, message.tokens, list(message.by)]


def read_view(text: str, read_messages: ReadMessages) -> View:
    """Read a view back; raises WireError, or LookupError for an entry that is missing."""
    match wire.decode(text):
        case [int(edits), list(cleared), list(rows)]:
            originals = read_messages([row[0] for row in rows if len(row) == 1])
            messages = [_read_message(row, originals) for row in rows]
            tokens = sum(message.tokens for message in messages)
            size = 2 + sum(message.size for message in messages)
            return View(Trail(messages), len(messages), tokens, size, edits, tuple(cleared))
        case _:
            raise WireError("not a stored view")


def _read_message(row: list[Any], originals: Mapping[int, Message]) -> Message:
    match row:
        case [int(seq)]:
            return originals[seq]
        case [int(seq), kind, str(content), int(tokens), list(by)]:
            return Message(seq, kind, content, tokens, tuple(by))
        case _:
            raise WireError("not a stored message")
