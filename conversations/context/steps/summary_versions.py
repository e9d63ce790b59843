"""Another text for a summary in view: a person's, or a new one by the model.

The text is checked like the first one, against the messages it replaces, which are all in the log.
So a version lacks no name that later messages refer to, is shorter than what it replaces, and has
the same recall list. Only the summary's block changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.by_hand import add_decision, build_trigger
from conversations.context.steps.removed_lists import strip_lists
from conversations.context.steps.summary import (
    END,
    START,
    Summarising,
    replace_by_text,
    replace_zone,
)
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_zone import Zone
from conversations.context.steps.working_view import WorkingView
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import (
    Edit,
    SpliceBlocks,
    SpliceMessages,
    Trigger,
    build_transformation,
)
from conversations.context.view.edits import Transformation as Change
from conversations.context.view.view import Block, View

_OF_PERSON = mark_recorded(gettext_noop("A person's words took the place of the summary's"))
_OF_MODEL = mark_recorded(gettext_noop("New words of the model took the place of the summary's"))

#: The trigger's settings for a person's text, and for a new one by the model. They are in the
#: record, so neither word may change.
EDIT, REWRITE = "edit", "rebuild"


def find_covered_zone(view: View, edits: Sequence[Edit]) -> Zone | None:
    """Return the zone that a summary replaced in `view`; None if it is no summary of ours.

    The text of a block that the API compacted and signed cannot be changed.
    """
    if not edits or not view.length:
        return None
    put, first = edits[0], view.messages[0]
    gone = [edit for edit in edits[1:] if isinstance(edit, SpliceMessages) and not edit.messages]
    if not isinstance(put, SpliceBlocks) or put.seq != first.seq or len(gone) != len(edits) - 1:
        return None
    messages = view.messages
    indexes = tuple(
        at
        for at, message in enumerate(messages)
        if at and any(edit.first <= message.seq <= edit.last for edit in gone)
    )
    if not indexes:
        return None
    tail = tuple(messages[at] for at in range(1, len(messages)) if at not in set(indexes))
    ours = first.blocks[put.at : put.at + put.drop]
    return Zone(tuple(messages[at] for at in indexes), indexes, tail, first, put.at, ours)


def request_again(view: View, zone: Zone, gauge: Gauge, policy: Policy) -> Summarising:
    """Request the summary of the zone again, in the view it was first made from."""
    trigger = Trigger(gauge.tokens, 0, gauge.source, REWRITE)
    return (yield from replace_zone(view, zone, trigger, gauge, policy, is_whole=True))


def strip_markers(text: str) -> str:
    """Return a summary's own text, without its markers and the lists."""
    words = strip_lists(text)
    return words.strip().removeprefix(START).removesuffix(END).strip()


def read_written(change: Change) -> str:
    """Return the text of the summary that a change puts in place of messages."""
    put = change.edits[0]
    blocks = put.blocks if isinstance(put, SpliceBlocks) else ()
    return strip_markers("".join(str(Block(text).value["text"]) for text in blocks))


def read_summary(view: View) -> str:
    """Return the text of the summary block in view; "" when there is none."""
    at = _find_block(view)
    return "" if at is None else strip_markers(str(view.messages[0].blocks[at].value["text"]))


def reword_summary(
    working: WorkingView, before: View, zone: Zone, text: str, setting: str
) -> Change | SummaryFlaw | None:
    """Put another text in the summary's block; None without a block or a change.

    `before` is the view that the summary was first made from, and `zone` what it replaced there.
    """
    at = _find_block(working.view)
    checked = replace_by_text(before, zone, build_trigger(working, setting), working.policy, text)
    if isinstance(checked, SummaryFlaw) or at is None:
        return checked if isinstance(checked, SummaryFlaw) else None
    put = checked.edits[0]
    first = working.view.messages[0]
    if not isinstance(put, SpliceBlocks) or put.blocks == (first.blocks[at].text,):
        return None
    edit = SpliceBlocks(first.seq, at, 1, put.blocks)
    note = _OF_PERSON if setting == EDIT else _OF_MODEL
    change = build_transformation(
        working.view, "summary", build_trigger(working, setting), [edit], note
    )
    return add_decision(working, change)


def _find_block(view: View) -> int | None:
    """Return the index of the summary's block in the first message."""
    first = view.messages[0] if view.length else None
    if first is None or "summary" not in first.by:
        return None
    at = first.by.index("summary")
    return at if str(first.blocks[at].value.get("text", "")).startswith(START) else None
