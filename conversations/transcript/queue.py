"""The messages that wait for the end of an answer, as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.view.stored_blocks import read_blocks
from conversations.log.contents import read_contents
from conversations.log.findings import read_leniently
from conversations.models import IS_LIVE, Conversation, QueuedPrompt
from conversations.turns.queue import is_damaged


@dataclass(frozen=True, slots=True)
class Waiting:
    """One message; `files` is the number of files sent with it."""

    id: str
    text: str
    files: int
    #: It is not what was sent, and can only be removed.
    is_damaged: bool = False


@dataclass(frozen=True, slots=True)
class Queue:
    """The waiting messages in order; while `is_live`, they are sent when the answer ends."""

    rows: tuple[Waiting, ...] = ()
    is_live: bool = False


def read_queue(conversation: Conversation) -> Queue:
    """Return the waiting messages of a conversation; one query when there are none, else two."""
    if not read_contents(conversation).queue:
        return Queue()
    rows = conversation.queued_prompts.all()
    found = tuple(map(_build_waiting, read_leniently(lambda: list(rows))))
    return Queue(found, bool(found) and conversation.turns.filter(IS_LIVE).exists())


def _build_waiting(row: QueuedPrompt) -> Waiting:
    blocks = read_blocks(row.content)
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    files = len(blocks) - len(texts)
    return Waiting(str(row.client_id), "\n\n".join(texts), files, is_damaged(row))
