"""Conversations of other programs as records of ours: one file a format; here they are told apart.

Text is taken over, with who said it and when. Tools, thinking and images of other programs mean
nothing here and are left out or named in a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conversations.transfer.formats import chatgpt, claude_ai
from conversations.transfer.recordings import RecordError

Record = dict[str, Any]
#: The field by which a format is told, and what makes a record of it.
FORMATS: tuple[tuple[str, Callable[[Record], Record]], ...] = (
    ("mapping", chatgpt.convert_chatgpt),
    ("chat_messages", claude_ai.convert_claude_ai),
    ("messages", lambda found: found),
)


def convert_to_record(found: Record) -> Record:
    """Return an exported conversation as a record; raises RecordError."""
    for name, reader in FORMATS:
        if name in found:
            return reader(found)
    raise RecordError("is no conversation of a known format")
