"""A conversation as reviewers read it: every message of the log as text, nothing rendered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from conversations.context.view.stored_blocks import read_blocks
from conversations.files.attachment_display import expand_for_reading
from conversations.log.findings import DAMAGE, read_leniently, reraise_outage
from conversations.models import ApiCall, Conversation, Draft
from conversations.reductions.reduction_page import format_block_text

PAGE = 50


@dataclass(frozen=True, slots=True)
class Part:
    """One content block: its type and its text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ReviewedMessage:
    """One message; `turn` is the key of its turn."""

    seq: int
    kind: str
    created_at: datetime
    turn: int | None
    parts: tuple[Part, ...]


def list_messages(conversation: Conversation, after: int) -> list[ReviewedMessage]:
    """Return a page of messages after a number."""
    rows = conversation.messages.filter(seq__gt=after).order_by("seq")[:PAGE]
    return [
        ReviewedMessage(
            row.seq,
            row.kind,
            row.created_at,
            row.turn_id,
            split_parts(row.content, conversation if row.kind == "prompt" else None),
        )
        for row in read_leniently(lambda: list(rows))
    ]


def list_unsent(conversation: Conversation) -> list[tuple[str, str]]:
    """Return the texts that are not in the log yet: the running answer and queued messages."""
    drafts = Draft.objects.filter(turn__conversation=conversation).values_list("thinking", "text")
    waiting = conversation.queued_prompts.values_list("content", flat=True)
    return [
        *(
            pair
            for draft in read_leniently(lambda: list(drafts))
            for pair in zip(("draft thinking", "draft"), draft, strict=True)
        ),
        *(
            ("waiting", part.text)
            for content in read_leniently(lambda: list(waiting))
            for part in split_parts(content, conversation)
        ),
    ]


def split_parts(content: str, prompted: Conversation | None = None) -> tuple[Part, ...]:
    """Return content blocks as text, a prompt's with its files; damaged content as it is stored."""
    try:
        blocks = read_blocks(content) if prompted is None else expand_for_reading(prompted, content)
        return tuple(Part(block["type"], format_block_text(block)) for block in blocks)
    except DAMAGE as error:
        reraise_outage(error)
        return (Part("damaged", content),)


def find_call_number(call: ApiCall) -> int:
    """Return the number by which the inspector names a call: its position in the conversation."""
    return ApiCall.objects.filter(conversation=call.conversation_id, pk__lte=call.pk).count()
