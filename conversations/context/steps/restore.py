"""Bring originals back into view: the one kind of transformation that may let a view grow.

A person requests it, so no threshold is involved. A message still in view gets its own blocks back,
and the engine's blocks beside them stay; a dropped message is inserted at its number. An answer and
the results of its calls are restored together or not at all: `check_rules` decides. Thinking is not
restored: its signature covers a prefix that no longer exists.
"""

from __future__ import annotations

from conversations.context.errors import ContextError
from conversations.context.steps.kinds import OURS
from conversations.context.steps.open_calls import leave_out_open_calls
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view import edits, rules
from conversations.context.view.edits import (
    Edit,
    SpliceBlocks,
    SpliceMessages,
    Transformation,
    Trigger,
)
from conversations.context.view.view import THINKING, Message, View

_ONE = mark_recorded(gettext_noop("Brought back %(count)s original message"))
_MANY = mark_recorded(gettext_noop("Brought back %(count)s original messages"))

#: Stands for the next prompt if the view ends with an answer.
_NEXT = '[{"type":"text","text":"?"}]'


def build_restore(view: View, *originals: Message) -> Transformation | None:
    """Build the change that restores originals; None if all are in view. Raises RuleError."""
    present = {message.seq: message for message in view.messages}
    changes: list[Edit] = []
    count = 0
    for original in originals:
        blocks = tuple(b.text for b in original.blocks if b.type not in THINKING)
        now = present.get(original.seq)
        if now is None:
            put = (original.seq, original.kind, f"[{','.join(blocks)}]")
            found: list[Edit] = [SpliceMessages(original.seq, original.seq, (put,))]
        else:
            found = _put_back(now, blocks)
        changes += found
        count += bool(found)
    if not changes:
        return None
    note = write_count(_ONE, _MANY, count)
    trigger = Trigger(count, 0, "counted")
    change = edits.build_transformation(view, "restore", trigger, changes, note)
    demand_legal(view, change.view_after)
    return change


def _put_back(now: Message, blocks: tuple[str, ...]) -> list[Edit]:
    """Replace only blocks that differ, so that the others keep their origin."""
    own = [block for block in now.blocks if block.by not in OURS]
    if tuple(block.text for block in own if block.type not in THINKING) == blocks:
        return []
    if len(own) != len(blocks):
        return [SpliceBlocks(now.seq, 0, len(own), blocks)]
    return [
        SpliceBlocks(now.seq, at, 1, (text,))
        for at, (block, text) in enumerate(zip(own, blocks, strict=True))
        if block.text != text
    ]


def demand_legal(before: View, after: View) -> None:
    """Check `after` as the beginning of the next request; raises RuleError.

    Where `before` breaks a rule already, the repair of the next request mends both.
    """
    try:
        _check_beginning(before)
    except ContextError:
        return
    _check_beginning(after)


def _check_beginning(view: View) -> None:
    last = view.messages[-1]
    if last.kind == "answer":
        view = view.append(Message.parse(last.seq + 1, "prompt", _NEXT))
    # The pipeline leaves these out before it sends a request.
    change = leave_out_open_calls(view)
    rules.check_rules(view if change is None else change.view_after)
