"""Changes of a view as data, and the function that applies them.

There are two kinds of edit and no others. A step proposes a `Transformation`; `apply` is the only
function that changes a view, used when a change is proposed, when it is recorded and when a stored
call is rebuilt, so the record cannot disagree with what was sent.

Thinking blocks are signed over everything before them, so `apply` removes all thinking behind the
first point an edit touches, always the same for the same edits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from conversations.context.errors import EditError
from conversations.context.steps.kinds import TransformationKind
from conversations.context.view import wire
from conversations.context.view.cost_decision import Decision
from conversations.context.view.view import THINKING, Block, Kind, Message, Trail, View
from conversations.context.view.view_cache import carry_states

#: `applied`: changed the view; `rejected`: the model's text was unusable; `vetoed`: by a receiver;
#: `expected`: the API will do it.
Outcome = Literal["applied", "rejected", "vetoed", "expected"]
Source = Literal["reported", "counted", "estimated"]


@dataclass(frozen=True, slots=True)
class SpliceBlocks:
    """In message `seq`, replace `drop` blocks from index `at` by `blocks` (wire texts)."""

    seq: int
    at: int
    drop: int
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpliceMessages:
    """Replace the messages numbered `first` to `last`, both included, by `messages`."""

    first: int
    last: int
    messages: tuple[tuple[int, Kind, str], ...] = ()


Edit = SpliceBlocks | SpliceMessages


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a step acted: `number` passed `threshold`; `source` says how the number is known."""

    number: int
    threshold: int
    source: Source
    #: The Policy field that holds the threshold.
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Transformation:
    """One recorded change of the view; tokens are estimates, bytes are exact.

    An applied one makes the body smaller, unless a person restores originals or rewords a summary,
    or a repair adds a missing result. A rejected or vetoed one has no edits and its `reason`; the
    reason of a repair is the broken rule or the API's message.
    """

    kind: TransformationKind
    trigger: Trigger
    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    bytes_before: int
    bytes_after: int
    note: str
    outcome: Outcome = "applied"
    reason: str = ""
    #: The numbers behind the decision of a step that weighs costs.
    decision: Decision | None = None
    #: The view after `apply`, from which this was measured; not part of the record.
    view_after: View = field(default_factory=View, compare=False, repr=False)


def build_transformation(
    view: View,
    kind: TransformationKind,
    trigger: Trigger,
    edits: Iterable[Edit],
    note: str,
    decision: Decision | None = None,
) -> Transformation:
    """Build the record of what `edits` would do to `view`, measured by applying them."""
    fixed = tuple(edits)
    after = apply(view, kind, fixed)
    return Transformation(
        kind, trigger, fixed, view.tokens, after.tokens, view.size, after.size, note,
        decision=decision, view_after=after,
    )  # fmt: skip


def build_unapplied(
    view: View, kind: TransformationKind, trigger: Trigger, outcome: Outcome, reason: str
) -> Transformation:
    """Build the record of a change that was not applied."""
    tokens, size = view.tokens, view.size
    return Transformation(
        kind,
        trigger,
        (),
        tokens,
        tokens,
        size,
        size,
        reason,
        outcome=outcome,
        reason=reason,
        view_after=view,
    )


def apply(view: View, kind: TransformationKind, edits: Sequence[Edit]) -> View:
    """Return the view after the edits, applied in order; raises EditError when one does not fit.

    No edits change nothing: the view is the same, and so is what the prompt cache has of it.
    """
    if not edits:
        return view
    messages = view.trail.messages[: view.length]
    tokens, size, behind = view.tokens, view.size, len(messages)
    touched: set[int] = set()
    is_spliced = False
    for edit in edits:
        match edit:
            case SpliceBlocks():
                at = _index(messages, edit.seq)
                old, new = messages[at : at + 1], [_splice_blocks(messages[at], edit, kind)]
                touched.add(at)
                first = at + 1
            case SpliceMessages():
                at = first = bisect_left(messages, edit.first, key=_seq)
                old = messages[at : bisect_left(messages, edit.last + 1, key=_seq)]
                new = _parse_inserted(edit)
                is_spliced = True
            case _:
                assert_never(edit)
        messages[at : at + len(old)] = new
        tokens += _tokens(new) - _tokens(old)
        size += _size(new) - _size(old)
        behind = min(behind, first)
    for at in range(behind, len(messages)):
        old_message = messages[at]
        if old_message.has_thinking:
            messages[at] = _drop_thinking(old_message)
            touched.add(at)
            tokens += messages[at].tokens - old_message.tokens
            size += messages[at].size - old_message.size
    trail = Trail(messages)
    if not is_spliced:
        carry_states(view, trail, touched)
    return View(trail, len(messages), tokens, size, view.edits + 1, view.cleared)


def _seq(message: Message) -> int:
    return message.seq


def _tokens(messages: list[Message]) -> int:
    return sum(message.tokens for message in messages)


def _size(messages: list[Message]) -> int:
    return sum(message.size for message in messages)


def _index(messages: list[Message], seq: int) -> int:
    at = bisect_left(messages, seq, key=_seq)
    if at == len(messages) or messages[at].seq != seq:
        raise EditError(f"message {seq} is not in view")
    return at


def _splice_blocks(message: Message, edit: SpliceBlocks, kind: str) -> Message:
    old = message.blocks
    if not 0 <= edit.at <= edit.at + edit.drop <= len(old):
        raise EditError(f"message {edit.seq} has {len(old)} blocks, not {edit.at}+{edit.drop}")
    new = tuple(Block(text, kind) for text in edit.blocks)
    tail = old[edit.at + edit.drop :]
    kept = tuple(block for block in tail if block.type not in THINKING)
    return Message.of(message.seq, message.kind, (*old[: edit.at], *new, *kept))


def _parse_inserted(edit: SpliceMessages) -> list[Message]:
    numbers = [number for number, _, _ in edit.messages]
    if numbers != sorted(set(numbers)) or not all(edit.first <= n <= edit.last for n in numbers):
        raise EditError(f"inserted messages must be numbered within {edit.first} to {edit.last}")
    return [Message.parse(number, kind, content) for number, kind, content in edit.messages]


def _drop_thinking(message: Message) -> Message:
    kept = tuple(block for block in message.blocks if block.type not in THINKING)
    return Message.of(message.seq, message.kind, kept)


def dump_edits(edits: Iterable[Edit]) -> str:
    """Write edits as JSON text for storage."""
    rows: list[list[object]] = []
    for edit in edits:
        match edit:
            case SpliceBlocks():
                rows.append(["blocks", edit.seq, edit.at, edit.drop, list(edit.blocks)])
            case SpliceMessages():
                rows.append(["messages", edit.first, edit.last, [list(m) for m in edit.messages]])
            case _:
                assert_never(edit)
    return wire.encode(rows)


def load_edits(text: str) -> tuple[Edit, ...]:
    """Read edits back; the inverse of `dump_edits`."""
    edits: list[Edit] = []
    for row in wire.decode(text):
        match row:
            case ["blocks", int(seq), int(at), int(drop), list(blocks)]:
                edits.append(SpliceBlocks(seq, at, drop, tuple(blocks)))
            case ["messages", int(first), int(last), list(messages)]:
                put = tuple((seq, kind, content) for seq, kind, content in messages)
                edits.append(SpliceMessages(first, last, put))
            case _:
                raise EditError(f"unknown edit {row!r}")
    return tuple(edits)
