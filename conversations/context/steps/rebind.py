"""Drop thinking that another system prompt, tool list or model signed.

The API refuses a thinking block whose prefix changed. Behind an edit `apply` drops it anyway; this
step handles a changed envelope. It runs after all other steps.
"""

from __future__ import annotations

from conversations.context.steps.protocol import Situation
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import (
    SpliceBlocks,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.view import THINKING, Message, View
from conversations.context.view.view_cache import THINKING_FOLD

_NOTE = mark_recorded(
    gettext_noop("Left out the model's earlier thinking, which the API would no longer accept")
)


def drop_unbound_thinking(view: View, situation: Situation) -> Transformation | None:
    """Drop all thinking if the request would not have the envelope that signed it."""
    seqs = view.fold_cached(THINKING_FOLD, list[int], _read)
    if not seqs or situation.bound_to in ("", situation.binding):
        return None
    first = next(message for message in view.messages if message.seq == seqs[0])
    at = next(at for at, block in enumerate(first.blocks) if block.type in THINKING)
    count = sum(
        sum(block.type in THINKING for block in message.blocks)
        for message in view.messages
        if message.has_thinking
    )
    edit = SpliceBlocks(first.seq, at, 1)
    return build_transformation(view, "rebind", Trigger(count, 0, "counted"), (edit,), _NOTE)


def _read(found: list[int], message: Message) -> None:
    if not found and message.has_thinking:
        found.append(message.seq)
