"""Exports of other programs, converted to records; one module for each format.

Text is converted with its author and time. Tools, thinking and images of other programs cannot be
used here and are left out or replaced by a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from conversations.context.errors import ContextError
from conversations.transfer.formats import chatgpt, claude_ai
from conversations.transfer.recordings import RecordError

Record = dict[str, Any]
#: The field that identifies a format, and its converter.
IMPORT_FORMATS: tuple[tuple[str, Callable[[Record], Record]], ...] = (
    ("mapping", chatgpt.convert_chatgpt),
    ("chat_messages", claude_ai.convert_claude_ai),
    ("messages", lambda found: found),
)


def convert_to_record(found: Record) -> Record:
    """Convert an exported conversation to a record; raises RecordError."""
    for name, reader in IMPORT_FORMATS:
        if name in found:
            try:
                return reader(found)
            except (ContextError, RecursionError) as error:
                raise RecordError(_("is nested too deeply")) from error
    raise RecordError(_("is no chat of a known format"))
