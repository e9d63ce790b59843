"""Whether what a reduction took was needed again: the calls of `recall` that read it since."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.context.errors import WireError
from conversations.context.steps.kinds import OURS
from conversations.context.steps.recall_list import message_id
from conversations.context.view import wire
from conversations.context.view.edits import Edit, SpliceBlocks
from conversations.context.view.searched_originals import INPUT
from conversations.context.view.view import Block, View
from conversations.log.entries import list_numbers_after
from conversations.models import Conversation, ToolCall, Transformation


def count_recalls(
    conversation: Conversation, row: Transformation, view: View, edits: tuple[Edit, ...]
) -> int:
    """Return how often an original that a change took from `view` was read again after it."""
    taken = frozenset(_list_taken(view, edits, row.kind))
    after = list_numbers_after(conversation, row.seq)
    calls = ToolCall.objects.filter(
        turn__conversation=conversation,
        name="recall",
        state=ToolCall.State.OK,
        answer__seq__gt=row.seq,
    ).values_list("answer__seq", "input")
    return sum(answer in after and _read_id(text) in taken for answer, text in calls)


def _list_taken(view: View, edits: tuple[Edit, ...], kind: str) -> Iterator[str]:
    """Yield the ids of the originals whose blocks or messages an edit took from the view.

    The engine's own block in the first message takes the place of none.
    Of a message also its calls and their results, which are recalled one by one; a restore pins
    the message alone, which brings all of them back (`removed_originals.list_removed`).
    """
    for edit in edits:
        if isinstance(edit, SpliceBlocks):
            if kind not in OURS:
                yield message_id(edit.seq)
                yield from filter(None, (Block(text).id for text in edit.blocks))
            continue
        for message in view.messages:
            if edit.first <= message.seq <= edit.last:
                yield message_id(message.seq)
                yield from (result.id for result in message.shape.results)
                yield from (call.id for call in message.shape.calls)
                yield from (*message.shape.server_results, *message.shape.server_calls)


def _read_id(text: str) -> str:
    """Return the id that a recall asked for; "" for a search."""
    try:
        given = wire.decode(text)
    except WireError:
        return ""
    found = given.get("id") if isinstance(given, dict) else None
    return found.removesuffix(INPUT) if isinstance(found, str) else ""
