"""Leave out calls of the API's own tools that never got their result.

A turn that was stopped, cut or at its limit may end while such a call waits. That is legal while
its turn is the last one; once the person has sent the next message the API would refuse it, and no
result can come any more. So a recorded change removes the call, the calls of our tools that it
made, and thinking that would then end its message.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.blocks import SERVER_CALLS
from conversations.context.view.edits import (
    SpliceBlocks,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.message_shape import read_caller
from conversations.context.view.server_calls import read_server_calls
from conversations.context.view.view import THINKING, Block, Message, View

NOTE = mark_recorded(
    gettext_noop("Left out what the model had begun to look up when its answer ended")
)


def leave_out_open_calls(view: View) -> Transformation | None:
    """Build the change that leaves out late calls; None if there are none."""
    late = read_server_calls(view).late
    if not late:
        return None
    gone = set(late)
    edits: list[SpliceBlocks] = []
    for message in view.messages:
        if message.seq >= min(late.values()):
            gone.update(block.id for block in message.blocks if read_caller(block.value) in late)
            edits += _list_edits(message, gone)
    return build_transformation(view, "trim", Trigger(len(late), 0, "counted"), edits, NOTE)


def _list_edits(message: Message, gone: AbstractSet[str]) -> Iterator[SpliceBlocks]:
    """Yield the edits of one message, last first, so that none moves the blocks of the next."""
    is_end, has_gone = True, any(_is_gone(block, gone) for block in message.blocks)
    for at in reversed(range(len(message.blocks) if has_gone else 0)):
        block = message.blocks[at]
        if _is_gone(block, gone) or (is_end and block.type in THINKING):
            yield SpliceBlocks(message.seq, at, 1)
        else:
            is_end = False


def _is_gone(block: Block, gone: AbstractSet[str]) -> bool:
    return block.type in (*SERVER_CALLS, "tool_use", "tool_result") and block.id in gone
