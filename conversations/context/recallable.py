"""The list, kept in view, of what can be read again: one line for each original that left it.

The list stands at the end of a block this engine wrote and is carried over when that block is
written anew. It is bounded; the newest lines stay, and a last line says how many older ones there
were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from conversations.context.results import calls
from conversations.context.view import Block, Message, View

HEADER = "Originals that can be read again:"
LIMIT = 4_000
#: A prompt or an answer with more text than this gets a line of its own.
_LONG_TEXT = 2_000
_OLDER = re.compile(r"\(and ([\d,]+) older ones\)")
_MARKERS = re.compile(r"\[\s*((?:END\s+)?CONTEXT\s+SUMMARY)\s*\]", re.IGNORECASE)


def neutral(text: str) -> str:
    """Take the power from summary markers inside a text that is only data."""
    return _MARKERS.sub(r"(\1)", text)


def message_id(seq: int) -> str:
    """Name a message for recall."""
    return f"msg_{seq}"


def lines(view: View, messages: Iterable[Message]) -> list[str]:
    """Give a line for each tool result and each long text of the messages."""
    known = calls(view)
    found: list[str] = []
    for message in messages:
        for result in message.shape.results:
            call = known.get(result.id)
            if call and not result.is_error and call.name != "recall":
                found.append(neutral(f'recall "{result.id}": {call.label}'))
        if message.kind != "results" and message.size > _LONG_TEXT:
            found.extend(_text_line(message))
    return found


def carried(blocks: Iterable[Block]) -> tuple[list[str], int]:
    """Read the lines, and the count of older ones, from blocks this engine wrote."""
    found: list[str] = []
    older = 0
    for block in blocks:
        _, header, tail = str(block.value["text"]).rpartition(HEADER + "\n")
        if not header:
            continue
        for line in tail.splitlines():
            if line.startswith("recall "):
                found.append(line)
            elif count := _OLDER.fullmatch(line):
                older += int(count[1].replace(",", ""))
    return found, older


def listed(found: list[str], older: int, limit: int = LIMIT) -> str:
    """Write the list within `limit` characters, newest lines kept; "" when there is none."""
    kept: list[str] = []
    room = limit - len(HEADER) - 40
    for line in reversed(list(dict.fromkeys(found))):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    older += len(dict.fromkeys(found)) - len(kept)
    if not kept and not older:
        return ""
    tail = [f"(and {older:,} older ones)"] if older else []
    return "\n".join([HEADER, *reversed(kept), *tail])


def _text_line(message: Message) -> Iterable[str]:
    chars = sum(len(block.value["text"]) for block in message.blocks if block.type == "text")
    if chars > _LONG_TEXT:
        who = "the user" if message.kind == "prompt" else "the assistant"
        yield f'recall "{message_id(message.seq)}": text of {who}, {chars:,} characters'
