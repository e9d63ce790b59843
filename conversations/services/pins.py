"""Keeping originals in full: what a person pins is brought back, if need be, and stays.

One transaction puts the originals back into view (a `restore` with its actor) and pins them, for
what is not pinned the next reduction may take again. Putting back waits until no answer is on its
way: a running turn works on the view it has read, and a change that it does not know would part
what is recorded from what is sent. Taking a restore back is a branch: an entry without edits whose
parent is the entry before it, so the view is the earlier one to the byte, thinking included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from conversations.conf import conf
from conversations.context import edits
from conversations.context.edits import SpliceBlocks, SpliceMessages, Trigger
from conversations.context.edits import Transformation as Change
from conversations.context.errors import ContextError, RuleError
from conversations.context.pinned import Pin as Target
from conversations.context.pinned import originals, pin_of, weight
from conversations.context.restore import restore
from conversations.context.view import Block, Message, View
from conversations.models import LIVE, ApiModel, Conversation, Pin, Transformation
from conversations.queries.path import path, step
from conversations.queries.pins import pins
from conversations.queries.policies import effective_policy
from conversations.services.chain import append, locked
from conversations.services.log import append_change
from conversations.signals import veto_of

#: What one request may name at most.
MOST_AT_ONCE = 1_000


class PinError(Exception):
    """What was asked for is refused; the text is for the person who asked."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@transaction.atomic
def keep_in_full(
    *, conversation_id: int, actor_id: int, ids: Sequence[str]
) -> Transformation | None:
    """Pin originals, and put back those that are not in view as they were; raises PinError."""
    conversation = locked(conversation_id)
    entries = path(conversation)
    log = [entry for entry in entries if isinstance(entry, Message)]
    wanted = _targets(log, ids)
    held = pins(conversation)
    demand_room(conversation, log, held | wanted)
    view = View()
    for entry in entries:
        view = step(view, entry)
    try:
        change = restore(view, *originals(view, log, wanted))
    except RuleError as error:
        raise PinError(
            "illegal", f"The model cannot be given this part without the rest: {error}"
        ) from error
    row = _record(conversation, change, actor_id) if change is not None else None
    for target in sorted(wanted - held, key=str):
        _append_pin(conversation, target, actor_id, is_pinned=True)
    return row


@transaction.atomic
def release(*, conversation_id: int, actor_id: int, id: str) -> None:
    """Unpin one original; what is not pinned stays as it is."""
    conversation = locked(conversation_id)
    held = pins(conversation)
    number = id.removeprefix("msg_")
    is_number = number.isdecimal() and len(number) < 19
    for target in (int(number) if is_number else id, id):
        if target in held:
            _append_pin(conversation, target, actor_id, is_pinned=False)
            return


@transaction.atomic
def undo_restore(*, conversation_id: int, actor_id: int, seq: int) -> Transformation:
    """Go back to the view before a restore, as long as nothing came behind it."""
    conversation = locked(conversation_id)
    rows = conversation.transformations.filter(kind="restore", outcome="applied")
    row = rows.exclude(edits="[]").filter(seq=seq).first()
    if row is None or conversation.tip != seq:
        raise PinError(
            "moved",
            "The conversation went on since then, so this can no longer be taken back."
            " Unpin what may be reduced again.",
        )
    now, before = _view(conversation, seq), _view(conversation, row.parent)
    size = (now.tokens, before.tokens, now.size, before.size)
    trigger = Trigger(1, 0, "counted")
    change = Change("restore", trigger, (), *size, f"Took back the restore of entry {seq}")
    undone = _record(conversation, change, actor_id, parent=row.parent)
    for target in sorted(pins(conversation) & _restored(row), key=str):
        _append_pin(conversation, target, actor_id, is_pinned=False)
    return undone


def _targets(log: list[Message], ids: Sequence[str]) -> frozenset[Target]:
    if not ids or len(ids) > MOST_AT_ONCE:
        raise PinError("unknown", "There is nothing of that name in this conversation.")
    found = [pin_of(log, name) for name in ids]
    known = frozenset(target for target in found if target is not None)
    if len(known) < len(set(found)):
        raise PinError("unknown", "There is nothing of that name in this conversation.")
    return known


def demand_room(conversation: Conversation, log: list[Message], wanted: Iterable[Target]) -> None:
    """Refuse more than a share of the window: what cannot be reduced must not fill it."""
    model = ApiModel.objects.filter(pk=conversation.model).first()
    most = pinned_room(model.window) if model else 0
    tokens = weight(log, wanted)
    if tokens > most:
        raise PinError(
            "full",
            f"Pinned parts would fill about {tokens:,} tokens; at most {most:,} may be kept"
            f" ({conf.pinned_percent} % of the window of {conversation.model})."
            " Unpin something first.",
        )


def pinned_room(window: int) -> int:
    """Give how many tokens pinned originals may fill."""
    return window * conf.pinned_percent // 100


def _record(
    conversation: Conversation, change: Change, actor_id: int, parent: int | None = None
) -> Transformation:
    """Append a person's change to the last turn, unless an answer is on its way."""
    if conversation.turns.filter(state__in=LIVE).exists():
        raise PinError("busy", "An answer is on its way; try again when it is done.")
    veto = veto_of(conversation.pk, change)
    if veto:
        raise PinError("vetoed", f"This site does not allow it: {veto}")
    try:
        policy = effective_policy(conversation)
    except ContextError as error:
        raise PinError("policy", str(error)) from error
    return append_change(
        conversation=conversation,
        turn_id=conversation.turns.order_by("number").values_list("pk", flat=True).last(),
        change=change,
        policy=policy,
        parent=parent,
        actor_id=actor_id,
    )


def _append_pin(
    conversation: Conversation, target: Target, actor_id: int, *, is_pinned: bool
) -> None:
    is_number = isinstance(target, int)
    row = Pin(
        conversation=conversation,
        tool_use_id="" if is_number else target,
        seq=target if is_number else None,
        is_pinned=is_pinned,
        actor_id=actor_id,
    )
    append(row, conversation)


def _view(conversation: Conversation, tip: int) -> View:
    view = View()
    for entry in path(conversation, tip):
        view = step(view, entry)
    return view


def _restored(row: Transformation) -> frozenset[Target]:
    """Name what a restore put back."""
    found: set[Target] = set()
    for edit in edits.load(row.edits):
        match edit:
            case SpliceBlocks():
                found |= {edit.seq, *(Block(text).id for text in edit.blocks)}
            case SpliceMessages():
                for seq, kind, content in edit.messages:
                    blocks = Message.parse(seq, kind, content).blocks
                    found |= {seq, *(block.id for block in blocks)}
    return frozenset(found)
