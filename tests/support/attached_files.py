"""Files that a person attaches, for tests of attachments."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from conversations.context.view.view import View
from conversations.files import attachments
from conversations.log.turn_state import load_state
from conversations.models import Attachment, Conversation, Turn, User
from conversations.turns import turns
from tests.support import small_files, stored_turns

PNG, PDF = small_files.png(64, 48), small_files.pdf(3)
NOTES = "Zeile ÄÖ 漢字\nsecond line".encode()


def kept(user: User, data: bytes = PNG, name: str = "cat.png", **more: Any) -> Attachment:
    return attachments.store_attachment(owner_id=user.pk, name=name, data=data, **more)


def started(user: User, *files: Attachment, text: str = "Look.") -> Turn:
    """Start a conversation with files."""
    return turns.start_conversation(
        owner_id=user.pk,
        model=stored_turns.MODEL,
        text=text,
        client_id=uuid4(),
        attachments=[file.public_id for file in files],
    )


def chat(turn: Turn) -> Conversation:
    return Conversation.objects.get(pk=turn.conversation_id)


def view_of(turn: Turn) -> View:
    return load_state(chat(turn), stored_turns.MODEL).view
