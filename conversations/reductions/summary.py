"""The card of a summary: its text in sections, what it covers, what it cost, its versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from conversations.context.steps.api_compaction import inserts_block
from conversations.context.steps.removed_lists import list_shown_lines
from conversations.context.steps.summary_versions import EDIT, REWRITE, strip_markers
from conversations.context.view import wire
from conversations.context.view.edits import SpliceBlocks, SpliceMessages, load_edits
from conversations.context.view.view import Block, Message
from conversations.log.path import read_path
from conversations.models import IS_LIVE, ApiCall, Conversation, Transformation
from conversations.reductions.word_diff import DiffBudget, Piece, compare_texts
from conversations.reductions.working_view import find_summary

#: A line that opens a section: a heading, or bold text alone.
_HEADING = re.compile(r"(?:#{1,6}\s+(.+?)\s*#*|\*\*(.+?)\*\*:?|__(.+?)__:?)")
#: Versions that are shown with what changed in them.
MOST = 20


@dataclass(frozen=True, slots=True)
class Section:
    """Text under a heading; `title` is "" for text before the first one."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Version:
    """One wording; `pieces` compares it with the previous one, None where they differ too much."""

    seq: int
    created_at: datetime
    by: str
    origin: str
    pieces: tuple[Piece, ...] | None
    is_shown: bool


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The calls that wrote a text: their number, model, tokens read and written, and cost."""

    count: int
    model: str
    read: int
    written: int
    cost_micros: int


@dataclass(frozen=True, slots=True)
class SummaryCard:
    """A summary; `first`, `last` and `count` describe the messages it covers.

    `calls` is None for a person's own wording and the API's.
    """

    sections: tuple[Section, ...]
    text: str
    listed: tuple[str, ...]
    first: int | None
    last: int | None
    count: int
    calls: CallTotals | None
    versions: tuple[Version, ...]
    #: The newest version, where this one has been replaced.
    newest: int | None
    can_edit: bool


def build_summary_card(conversation: Conversation, row: Transformation) -> SummaryCard | None:
    """Return the card of an applied summary; None for any other change."""
    if row.kind != "summary" or row.outcome != "applied" or row.edits == "[]":
        return None
    block = _block(row)
    text = strip_markers(str(block.value.get("text", ""))) if block else ""
    before = [e for e in read_path(conversation, row.parent) if isinstance(e, Message)]
    covered = _covered(conversation, row, [message.seq for message in before])
    known = find_summary(conversation)
    is_shown = known is not None and row.seq in {one.seq for one in known.versions}
    newest = known.current if known is not None and is_shown else None
    is_editable = known is not None and known.zone is not None and newest == row.seq
    is_live = conversation.turns.filter(IS_LIVE).exists()
    return SummaryCard(
        sections=split_sections(text),
        text=text,
        listed=list_shown_lines([block]) if block else (),
        first=covered[0] if covered else None,
        last=covered[-1] if covered else None,
        count=len(covered),
        calls=_sum_calls(_calls(row)),
        versions=_versions(conversation, row),
        newest=None if newest == row.seq else newest,
        can_edit=is_editable and not is_live,
    )


def split_sections(text: str) -> tuple[Section, ...]:
    """Split a text at its headings."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading:
            found.append((next(filter(None, heading.groups())), []))
        else:
            found[-1][1].append(line)
    made = (Section(title, "\n".join(lines).strip()) for title, lines in found)
    return tuple(one for one in made if one.title or one.text)


def _block(row: Transformation) -> Block | None:
    """Return the text block that a summary put into the first message."""
    for edit in load_edits(row.edits):
        if isinstance(edit, SpliceBlocks) and edit.blocks:
            return Block(edit.blocks[0])
        if isinstance(edit, SpliceMessages) and edit.messages and inserts_block([edit]):
            value = Message.parse(*edit.messages[0]).blocks[0].value
            return Block(wire.encode({"type": "text", "text": str(value.get("content") or "")}))
    return None


def _covered(conversation: Conversation, row: Transformation, log: list[int]) -> list[int]:
    """Return the numbers of the messages a version covers: those its first wording replaced."""
    edits = load_edits(row.edits)
    if row.setting in (EDIT, REWRITE):
        found = find_summary(conversation, row.seq)
        return [message.seq for message in found.zone.messages] if found and found.zone else []
    gone = [edit for edit in edits if isinstance(edit, SpliceMessages)]
    return [seq for seq in log if any(edit.first <= seq <= edit.last for edit in gone)]


def _calls(row: Transformation) -> list[ApiCall]:
    """Return the calls that wrote this text: attempts and parts, in order."""
    call = row.summary_call
    if call is None:
        return []
    calls = ApiCall.objects.filter(turn=call.turn_id, purpose="summary", tip=call.tip)
    known = calls.filter(number__lte=call.number, result__isnull=False, model=call.model)
    return list(known.select_related("result").order_by("number"))


def _sum_calls(calls: list[ApiCall]) -> CallTotals | None:
    if not calls:
        return None
    return CallTotals(
        len(calls),
        calls[-1].model,
        sum(_read(call) for call in calls),
        sum(call.result.output_tokens or 0 for call in calls),
        sum(call.result.cost_micros for call in calls),
    )


def _read(call: ApiCall) -> int:
    result = call.result
    read, written = result.cache_read_tokens or 0, result.cache_write_tokens or 0
    return (result.input_tokens or 0) + read + written


def _versions(conversation: Conversation, row: Transformation) -> tuple[Version, ...]:
    """Return the wordings, oldest first, each compared with the one before it."""
    on_path = read_path(conversation)
    seqs = {entry.seq for entry in on_path} | {row.seq}
    rows = conversation.transformations.filter(kind="summary", outcome="applied", seq__in=seqs)
    found: list[Version] = []
    budget = DiffBudget()
    before = ""
    for one in rows.exclude(edits="[]").select_related("actor", "summary_call").order_by("seq"):
        block = _block(one)
        text = strip_markers(str(block.value.get("text", ""))) if block else ""
        found.append(
            Version(
                one.seq,
                one.created_at,
                one.actor.get_username() if one.actor else "",
                one.setting,
                compare_texts(before, text, budget) if found else None,
                one.seq == row.seq,
            )
        )
        before = text
    return tuple(found[-MOST:])
