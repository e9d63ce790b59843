"""Pins: originals that a person wants sent in full, restored if need be and kept.

One transaction restores the originals (a `restore` with its actor) and pins them, because the next
reduction may remove unpinned originals. Restoring is refused while an answer is running: a running
turn works on the view it has read, so another change would make the sent request differ from the
record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from conversations import models
from conversations.conf import conf
from conversations.context.errors import RuleError
from conversations.context.steps.pinned import Pin, estimate_pins, find_originals, find_pins
from conversations.context.steps.restore import build_restore
from conversations.context.view.view import Message
from conversations.db import transact
from conversations.log.chain import append_row, lock_conversation
from conversations.log.contents import read_contents
from conversations.log.path import fold_path, read_path
from conversations.models import ApiModel, Conversation, Transformation
from conversations.reductions.record_change import ManualChangeError, record_change, refusing_damage
from conversations.rendering.numbers import write_number


@transact
@refusing_damage()
def pin_originals(
    *, conversation_id: int, actor_id: int, ids: Sequence[str]
) -> Transformation | None:
    """Pin originals and restore those that are not in view; raises ManualChangeError."""
    conversation = lock_conversation(conversation_id)
    log = [entry for entry in read_path(conversation) if isinstance(entry, Message)]
    wanted = parse_targets(log, ids)
    held = list_pins(conversation)
    demand_pin_room(conversation, log, held | wanted)
    row = restore_originals(conversation, wanted, actor_id)
    for target in sorted(wanted - held, key=str):
        append_pin(conversation, target, actor_id, is_pinned=True)
    return row


def restore_originals(
    conversation: Conversation, wanted: frozenset[Pin], actor_id: int
) -> Transformation | None:
    """Restore originals; None when they are in view already. Raises ManualChangeError."""
    entries = read_path(conversation)
    view = fold_path(entries)
    log = [entry for entry in entries if isinstance(entry, Message)]
    try:
        change = build_restore(view, *find_originals(view, log, wanted))
    except RuleError as error:
        words = _("The model cannot be given this part without the rest: %(why)s")
        raise ManualChangeError("illegal", words % {"why": error}) from error
    return record_change(conversation, change, actor_id) if change is not None else None


@transact
def unpin_originals(*, conversation_id: int, actor_id: int, ids: Sequence[str]) -> None:
    """Unpin originals; the view does not change."""
    conversation = lock_conversation(conversation_id)
    held = list_pins(conversation)
    for name in ids:
        number = name.removeprefix("msg_")
        is_number = number.isdecimal() and len(number) < 19
        targets: tuple[Pin, ...] = (int(number) if is_number else name, name)
        target = next((one for one in targets if one in held), None)
        if target is not None:
            append_pin(conversation, target, actor_id, is_pinned=False)


def parse_targets(log: list[Message], ids: Sequence[str]) -> frozenset[Pin]:
    """Parse the ids of originals; raises ManualChangeError for ids that the log does not hold."""
    found = find_pins(log, ids)
    known = frozenset(target for target in found if target is not None)
    if not known or None in found:
        raise ManualChangeError("unknown", _("There is nothing of that name in this chat."))
    return known


def demand_pin_room(conversation: Conversation, log: list[Message], wanted: Iterable[Pin]) -> None:
    """Raise ManualChangeError when pins would fill more than their share of the window."""
    model = ApiModel.objects.filter(pk=conversation.model).first()
    most = limit_pinned_tokens(model.window) if model else 0
    tokens = estimate_pins(log, wanted)
    if tokens > most:
        words = _(
            "Pinned parts would fill about %(tokens)s tokens; at most %(most)s may be kept"
            " (%(percent)s %% of the window of %(model)s). Unpin something first."
        )
        numbers = {
            "tokens": write_number(tokens),
            "most": write_number(most),
            "percent": conf.pinned_percent,
            "model": conversation.model,
        }
        raise ManualChangeError(
            "full",
            words % numbers,
        )


def limit_pinned_tokens(window: int) -> int:
    """Return how many tokens pinned originals may fill in a window of that size."""
    return window * conf.pinned_percent // 100


def append_pin(conversation: Conversation, target: Pin, actor_id: int, *, is_pinned: bool) -> None:
    """Append a row that says whether a target is pinned from now on."""
    is_number = isinstance(target, int)
    row = models.Pin(
        conversation=conversation,
        tool_use_id="" if is_number else target,
        seq=target if is_number else None,
        is_pinned=is_pinned,
        actor_id=actor_id,
    )
    append_row(row, conversation)


def list_pins(conversation: Conversation, until: datetime | None = None) -> frozenset[Pin]:
    """Return the targets that are pinned, now or at an earlier moment."""
    if not read_contents(conversation).pins:
        return frozenset()
    return list_pins_by_id(conversation.pk, until)


def list_pins_by_id(conversation_id: int, until: datetime | None = None) -> frozenset[Pin]:
    """Return the pinned targets of a conversation by its key."""
    kept = models.Pin.objects.filter(conversation_id=conversation_id)
    if until is not None:
        kept = kept.filter(created_at__lte=until)
    rows = kept.order_by("link").values_list("tool_use_id", "seq", "is_pinned")
    latest: dict[Pin, bool] = {}
    for tool_use_id, seq, is_pinned in rows:
        latest[tool_use_id if seq is None else seq] = is_pinned
    return frozenset(target for target, is_pinned in latest.items() if is_pinned)
