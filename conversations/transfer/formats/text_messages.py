"""Shared by the converters: plain-text messages in the form that the record reader accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from conversations.context.view import wire
from conversations.transfer.record_fields import clean_title
from conversations.transfer.recordings import RecordError

BEGINS = "(The conversation begins with an answer.)"
#: Characters of a title that is made of words, as of a conversation that begins here.
MOST_WORDS = 80


def build_messages(pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Build messages of (role, text) pairs, starting with the first of the user."""
    found = [{"role": role, "content": text} for role, text in pairs if text.strip()]
    if not found:
        raise RecordError(_("is empty"))
    if found[0]["role"] != "user":
        found.insert(0, {"role": "user", "content": BEGINS})
    return found


def choose_title(name: object, messages: list[dict[str, Any]]) -> str:
    """Return the title of the original, or the first words where it has none."""
    return clean_title(name) or clean_title(messages[0]["content"])[:MOST_WORDS]


def build_record_id(program: str, found: dict[str, Any], *names: str) -> str:
    """Return the id of the original, or a digest of its content when it has none."""
    values = (found.get(name) for name in names)
    own = next((value for value in values if isinstance(value, str) and value.strip()), "")
    return f"{program}:{own or wire.digest(wire.encode(found))}"


def join_texts(parts: Iterable[Any]) -> str:
    return "\n\n".join(part for part in parts if isinstance(part, str) and part.strip())
