"""The largest blocks of the next request, each with a description."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from conversations.context.errors import WireError
from conversations.context.steps.kinds import OURS
from conversations.context.steps.recall_list import message_id
from conversations.context.steps.shorten_results import index_calls
from conversations.context.view.view import THINKING, Block, Message
from conversations.log.turn_state import load_state
from conversations.models import Conversation
from conversations.reductions.pins import list_pins
from conversations.reductions.shapes import PinState

MOST = 6
_WORDS = 60


@dataclass(frozen=True, slots=True)
class LargeBlock:
    """A block; `keep` is its original's pin state, None where it cannot be pinned or excluded."""

    what: str
    tokens: int
    url: str
    keep: PinState | None


def list_largest_blocks(conversation: Conversation) -> tuple[LargeBlock, ...]:
    """Return the largest blocks that the next request would contain, largest first."""
    view = load_state(conversation, conversation.model).view
    found = [
        (block.tokens, message, block)
        for message in view.messages
        for block in _list_blocks(message)
    ]
    found.sort(key=lambda row: row[0], reverse=True)
    labels = {call.id: call.label for call in index_calls(view).values()}
    held = list_pins(conversation)
    return tuple(
        LargeBlock(
            _describe(message, block, labels),
            tokens,
            _url(conversation, message, block),
            _keep(message, block, held),
        )
        for tokens, message, block in found[:MOST]
    )


def _list_blocks(message: Message) -> list[Block]:
    """Return the blocks of a message except thinking; none of a damaged one, which is not sent."""
    try:
        return [block for block in message.blocks if block.type not in THINKING]
    except WireError:
        return []


def _describe(message: Message, block: Block, labels: dict[str, str]) -> str:
    if block.by in OURS:
        return _("a summary")
    if block.type == "tool_result":
        return _("result of %s") % _shorten(labels.get(block.id, block.id))
    if block.type == "tool_use":
        return _("call of %s") % str(block.value["name"])
    if block.type == "text":
        words = _shorten(str(block.value["text"]))
        return (_("answer: %s") if message.kind == "answer" else _("message: %s")) % words
    return block.type


def _shorten(text: str) -> str:
    line = " ".join(text[: _WORDS * 2].split())
    return line if len(line) <= _WORDS else line[: _WORDS - 1] + "…"


def _url(conversation: Conversation, message: Message, block: Block) -> str:
    if block.type == "tool_result":
        return reverse("tool_output", args=[conversation.public_id, block.id])
    place = reverse("chat", args=[conversation.public_id])
    return f"{place}?m={message.seq}#m-{message.seq}"


def _keep(message: Message, block: Block, held: frozenset[str | int]) -> PinState | None:
    if block.by in OURS or (message.kind == "results" and block.type != "tool_result"):
        return None
    if block.type == "tool_result":
        return PinState(block.id, block.id in held)
    return PinState(message_id(message.seq), message.seq in held)
