"""The messages that wait for the end of an answer, as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.view import wire
from conversations.log.contents import read_contents
from conversations.models import IS_LIVE, Conversation


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message; `files` is the number of files sent with it."""

    id: str
    text: str
    files: int


@dataclass(frozen=True, slots=True)
class Queue:
    """The waiting messages in order; while `is_live`, they are sent when the answer ends."""

    rows: tuple[Waiting, ...] = ()
    is_live: bool = False


def read_queue(conversation: Conversation) -> Queue:
    """Return the waiting messages of a conversation; one query when there are none, else two."""
    if not read_contents(conversation).queue:
        return Queue()
    rows = conversation.queued_prompts.values_list("client_id", "content")
    found = tuple(_build_waiting(str(client_id), content) for client_id, content in rows)
    return Queue(found, bool(found) and conversation.turns.filter(IS_LIVE).exists())


def _build_waiting(id: str, content: str) -> Waiting:
    blocks = wire.decode(content)
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return Waiting(id, "\n\n".join(texts), len(blocks) - len(texts))
