"""Other words for a summary in view: a person's, or the model's when it is asked again.

The words are judged as the first ones were, against the messages that they stand for, which are all
in the log: so a version leaves out no name that later messages refer to, is shorter than what it
replaces, and carries the same list of what can be recalled. Only the summary's block changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.by_hand import add_decision, build_trigger
from conversations.context.steps.recall_list import HEADER
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
from conversations.context.view.edits import (
    Edit,
    SpliceBlocks,
    SpliceMessages,
    Trigger,
    build_transformation,
)
from conversations.context.view.edits import Transformation as Change
from conversations.context.view.view import View

#: The settings of triggers whose words are a person's, or the model's at another attempt.
EDIT, REBUILD = "edit", "rebuild"


def find_covered_zone(view: View, edits: Sequence[Edit]) -> Zone | None:
    """Give the zone that a summary replaced in the view before it; None when it was none of ours.

    What the API compacted and signed has no words that could be others.
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
    """Ask for the summary of the zone once more, in the view it was first made of."""
    trigger = Trigger(gauge.tokens, 0, gauge.source, REBUILD)
    return (yield from replace_zone(view, zone, trigger, gauge, policy))


def strip_markers(text: str) -> str:
    """Give a summary's own words: without its markers and the list of what can be recalled."""
    words, _, _ = text.partition(HEADER)
    return words.strip().removeprefix(START).removesuffix(END).strip()


def read_summary(view: View) -> str:
    """Give the words of the summary block in view; "" when there is none."""
    at = _find_block(view)
    return "" if at is None else strip_markers(str(view.messages[0].blocks[at].value["text"]))


def reword_summary(
    desk: WorkingView, before: View, zone: Zone, text: str, setting: str
) -> Change | SummaryFlaw | None:
    """Put other words in the summary's block; None when there is none or they are the same.

    `before` is the view that the summary was first made of, and `zone` what it replaced there.
    """
    at = _find_block(desk.view)
    judged = replace_by_text(before, zone, build_trigger(desk, setting), desk.policy, text)
    if isinstance(judged, SummaryFlaw) or at is None:
        return judged if isinstance(judged, SummaryFlaw) else None
    put = judged.edits[0]
    first = desk.view.messages[0]
    if not isinstance(put, SpliceBlocks) or put.blocks == (first.blocks[at].text,):
        return None
    edit = SpliceBlocks(first.seq, at, 1, put.blocks)
    who = "A person's words" if setting == EDIT else "New words of the model"
    note = f"{who} took the place of the summary's"
    change = build_transformation(desk.view, "summary", build_trigger(desk, setting), [edit], note)
    return add_decision(desk, change)


def _find_block(view: View) -> int | None:
    """Give the index of the summary's block in the first message."""
    first = view.messages[0] if view.length else None
    if first is None or "summary" not in first.by:
        return None
    at = first.by.index("summary")
    return at if str(first.blocks[at].value.get("text", "")).startswith(START) else None
