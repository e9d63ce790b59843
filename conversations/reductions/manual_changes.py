"""Manual changes of the context: compact now, exclude, include, edit a summary, undo.

Each is one transformation with its actor, made by the engine's steps and edits. A previewed change
is applied exactly or not at all. An undo is a branch: an entry without edits whose parent is the
entry before the change, so the view is the earlier one to the byte, thinking included. It works as
long as nothing followed the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from conversations.context.steps import by_hand
from conversations.context.steps.exclude import exclude_targets
from conversations.context.steps.kinds import KINDS
from conversations.context.steps.pinned import Pin as Target
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_versions import EDIT, reword_summary
from conversations.context.translation import mark_recorded
from conversations.context.view import edits
from conversations.context.view.edits import SpliceBlocks, SpliceMessages, Trigger
from conversations.context.view.edits import Transformation as Change
from conversations.context.view.view import Block, Message, View
from conversations.db import transact
from conversations.log.chain import lock_conversation
from conversations.log.path import fold_path, read_path
from conversations.models import Conversation, Transformation
from conversations.reductions.pins import append_pin, list_pins, parse_targets, restore_originals
from conversations.reductions.record_change import (
    ManualChangeError,
    demand_idle,
    demand_policy,
    demand_same_body,
    record_change,
    refusing_damage,
)
from conversations.reductions.removed_originals import UNDO
from conversations.reductions.working_view import find_summary, load_working_view
from conversations.templatetags.recorded import translated

_STEPS = {"results": by_hand.compact_by_hand, "turns": by_hand.drop_turns_by_hand}
_TOOK_BACK = mark_recorded(gettext_noop("Took back the %(step)s of entry %(entry)s"))
_MOVED = gettext_noop("The chat went on since then, so this can no longer be taken back.")


@transact
@refusing_damage()
def compact_now(
    *,
    conversation_id: int,
    actor_id: int,
    wanted: Literal["results", "turns"],
    digest: str | None,
) -> Transformation:
    """Compact now, exactly as previewed, or by one click (None); raises ManualChangeError."""
    conversation = lock_conversation(conversation_id)
    demand_idle(conversation)
    change = _STEPS[wanted](load_working_view(conversation, demand_policy(conversation)))
    if change is None:
        code = "moved" if digest is not None else "nothing"
        raise ManualChangeError(code, _("The chat went on; there is nothing to reduce any more."))
    if digest is not None:
        demand_same_body(change, digest)
    return record_change(conversation, change, actor_id)


@transact
@refusing_damage()
def exclude_originals(*, conversation_id: int, actor_id: int, ids: Sequence[str]) -> Transformation:
    """Replace originals by a notice; raises ManualChangeError."""
    conversation = lock_conversation(conversation_id)
    wanted = parse_targets(_read_log(conversation), ids)
    demand_idle(conversation)
    working = load_working_view(conversation, demand_policy(conversation))
    if _has_pinned(working.view, wanted, list_pins(conversation)):
        raise ManualChangeError(
            "pinned", _("This is pinned, so it is always sent in full. Unpin it first.")
        )
    change = exclude_targets(working, wanted)
    if change is None:
        raise ManualChangeError(
            "nothing",
            _(
                "Leaving this out would free nothing: it is not sent any more, shorter than the"
                " notice in its place, or the first message, which stays."
            ),
        )
    return record_change(conversation, change, actor_id)


@transact
@refusing_damage()
def include_originals(
    *, conversation_id: int, actor_id: int, ids: Sequence[str]
) -> Transformation | None:
    """Put excluded originals back without pinning them; None when they are already in view."""
    conversation = lock_conversation(conversation_id)
    demand_idle(conversation)
    return restore_originals(conversation, parse_targets(_read_log(conversation), ids), actor_id)


@transact
@refusing_damage()
def edit_summary(
    *, conversation_id: int, actor_id: int, seq: int, text: str
) -> Transformation | None:
    """Store a person's wording of a summary; None when unchanged. Raises ManualChangeError."""
    conversation = lock_conversation(conversation_id)
    demand_idle(conversation)
    change = build_rewording(conversation, seq, text, EDIT)
    return None if change is None else record_change(conversation, change, actor_id)


def build_rewording(conversation: Conversation, seq: int, text: str, setting: str) -> Change | None:
    """Build the change that rewords the summary whose newest version is entry `seq`."""
    found = find_summary(conversation)
    if found is None or found.current != seq:
        raise ManualChangeError(
            "replaced", _("This is not the newest version of the summary in use.")
        )
    if found.zone is None:
        raise ManualChangeError(
            "signed", _("The API made and signed this summary; it cannot be changed.")
        )
    working = load_working_view(conversation, demand_policy(conversation))
    change = reword_summary(working, found.before, found.zone, text, setting)
    if isinstance(change, SummaryFlaw):
        missing = f": {', '.join(change.missing[:5])}" if change.missing else ""
        words = _("These words are not accepted: %(why)s.")
        why = translated(change.reason) + missing
        raise ManualChangeError("flawed", words % {"why": why})
    return change


@transact
@refusing_damage()
def undo_change(*, conversation_id: int, actor_id: int, seq: int) -> Transformation:
    """Return to the view before a person's change, as long as nothing followed it."""
    conversation = lock_conversation(conversation_id)
    rows = conversation.transformations.filter(seq=seq, outcome="applied").exclude(actor=None)
    row = rows.exclude(edits="[]").first()
    if row is None or conversation.tip != seq:
        kind = row.kind if row is not None else "restore"
        raise ManualChangeError("moved", f"{_(_MOVED)} {_instead(kind)}".strip())
    now = fold_path(read_path(conversation, seq))
    before = fold_path(read_path(conversation, row.parent))
    size = (now.tokens, before.tokens, now.size, before.size)
    change = Change("restore", Trigger(1, 0, "counted", UNDO), (), *size, _note(row))
    undone = record_change(conversation, change, actor_id, parent=row.parent)
    if row.kind == "restore":
        for target in sorted(list_pins(conversation) & _list_restored(row), key=str):
            append_pin(conversation, target, actor_id, is_pinned=False)
    return undone


def _instead(kind: str) -> str:
    words = KINDS[kind].instead
    return _(words) if words else ""


def _note(row: Transformation) -> str:
    return _TOOK_BACK % {"step": row.kind, "entry": row.seq}


def _read_log(conversation: Conversation) -> list[Message]:
    return [entry for entry in read_path(conversation) if isinstance(entry, Message)]


def _has_pinned(view: View, wanted: frozenset[Target], held: frozenset[Target]) -> bool:
    """Return whether a target is pinned, itself or as part of its message."""
    for message in view.messages:
        ids = {message.seq, *(result.id for result in message.shape.results)}
        if message.seq in wanted and ids & held:
            return True
        if message.seq in held and ids & wanted:
            return True
    return bool(wanted & held)


def _list_restored(row: Transformation) -> frozenset[Target]:
    """Return the targets that a restore put back."""
    found: set[Target] = set()
    for edit in edits.load_edits(row.edits):
        match edit:
            case SpliceBlocks():
                found |= {edit.seq, *(Block(text).id for text in edit.blocks)}
            case SpliceMessages():
                for seq, kind, content in edit.messages:
                    blocks = Message.parse(seq, kind, content).blocks
                    found |= {seq, *(block.id for block in blocks)}
    return frozenset(found)
