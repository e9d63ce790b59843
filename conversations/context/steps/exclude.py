"""Leave a past tool result or message out of what is sent, at a person's request.

A short notice that names the original for recall replaces it. So it is a compaction to nothing:
calls keep their results, ids and error flags are unchanged, and the log entry keeps it out. The
first message stays, since it says what the conversation is about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from conversations.context.steps.by_hand import add_decision, build_trigger, is_smaller
from conversations.context.steps.kinds import OURS
from conversations.context.steps.pinned import Pin
from conversations.context.steps.recall_list import message_id
from conversations.context.steps.shorten_results import Content, rewrite_result
from conversations.context.steps.working_view import WorkingView
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view import wire
from conversations.context.view.edits import (
    Edit,
    SpliceBlocks,
    Transformation,
    build_transformation,
)
from conversations.context.view.view import Message

_ONE = mark_recorded(gettext_noop("Left %(count)s part out by hand"))
_MANY = mark_recorded(gettext_noop("Left %(count)s parts out by hand"))

#: The setting of such a change's trigger.
EXCLUDE = "exclude"
_OWN = (*OURS, "compaction")


def exclude_targets(working: WorkingView, targets: Collection[Pin]) -> Transformation | None:
    """Replace each target by a notice; None if no target would become smaller."""
    found: list[Edit] = []
    count = 0
    for at, message in enumerate(working.view.messages):
        parts = list(_list_edits(message, targets, is_first=at == 0))
        count += sum(1 for part in parts if part.blocks)
        found += parts
    if not found:
        return None
    note = write_count(_ONE, _MANY, count)
    change = build_transformation(
        working.view, "compaction", build_trigger(working, EXCLUDE), found, note
    )
    return add_decision(working, change) if is_smaller(change) else None


def _list_edits(
    message: Message, targets: Collection[Pin], *, is_first: bool
) -> Iterator[SpliceBlocks]:
    """Yield the edits for one message."""
    is_whole = message.seq in targets
    for result in message.shape.results:
        if is_whole or result.id in targets:
            new = rewrite_result(message.blocks[result.at], _rewrite_as_notice, "compaction")
            if new is not None:
                yield SpliceBlocks(message.seq, result.at, 1, (new.text,))
    if is_whole and message.kind != "results" and not is_first:
        yield from _replace_texts(message)


def _replace_texts(message: Message) -> Iterator[SpliceBlocks]:
    """Replace the texts of a message by one notice; calls and thinking stay."""
    kinds = ("text",) if message.kind == "answer" else ("text", "image", "document")
    explanation = [
        at
        for at, block in enumerate(message.blocks)
        if block.type in kinds and block.by not in _OWN
    ]
    notice = wire.encode({"type": "text", "text": write_exclusion_notice(message_id(message.seq))})
    size = sum(len(message.blocks[at].text.encode()) for at in explanation)
    if len(notice.encode()) < size:
        # Last first, so that an edit does not move the blocks of the next one.
        for at in reversed(explanation):
            yield SpliceBlocks(message.seq, at, 1, (notice,) if at == explanation[0] else ())


def write_exclusion_notice(id: str) -> str:
    """Write the text that replaces an original that was left out."""
    return f'[left out at the user\'s wish; recall "{id}" for the original]'


def _rewrite_as_notice(_content: Content, recall: str) -> Content:
    return write_exclusion_notice(recall)
