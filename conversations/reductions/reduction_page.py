"""The page of one transformation: why it happened, and each changed block before and after."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, assert_never

from django.db.models import Max, Min, Q
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from conversations.context.errors import WireError
from conversations.context.steps.api_compaction import NUMBER
from conversations.context.steps.pinned import Pin
from conversations.context.steps.recall_list import message_id
from conversations.context.steps.repair_drafts import read_value
from conversations.context.tokens.media_words import describe_block, read_text
from conversations.context.view import wire
from conversations.context.view.blocks import read_result_text
from conversations.context.view.edits import Edit, SpliceBlocks, SpliceMessages, load_edits
from conversations.context.view.message_shape import Call
from conversations.context.view.view import Block, Kind, Message, View
from conversations.log.findings import DAMAGE
from conversations.log.path import fold_path, read_path
from conversations.models import Conversation, Transformation
from conversations.reductions.explanation import explain_change
from conversations.reductions.pins import list_pins
from conversations.reductions.recalls import count_recalls
from conversations.reductions.removed_originals import (
    can_restore,
    can_undo,
    is_manual,
    name_original,
)
from conversations.reductions.shapes import Change, PinState, Reduction
from conversations.reductions.summary import build_summary_card
from conversations.reductions.words import describe_decision, describe_kind, name_preset
from conversations.toolbox.tool_labels import name_tool

#: Fields of the row that the page shows as they are stored.
COLUMNS = (
    "seq", "kind", "outcome", "note", "reason", "number", "threshold", "source", "setting",
    "tokens_before", "tokens_after", "bytes_before", "bytes_after", "created_at",
)  # fmt: skip
_TITLES: dict[Kind, Promise] = {
    "prompt": _("Message"), "answer": _("Answer"), "results": _("Tool results"),
}  # fmt: skip


def load_transformation(conversation: Conversation, seq: int) -> Transformation:
    """Return the row with that number; raises Http404."""
    rows = Transformation.objects.select_related(
        "turn", "summary_call", "summary_call__result", "actor"
    )
    row = rows.filter(conversation=conversation, seq=seq).first()
    if row is None:
        raise Http404("no such transformation")
    return row


def read_reduction(conversation: Conversation, seq: int) -> Reduction:
    """Return the page of the transformation with that number; raises Http404."""
    row = load_transformation(conversation, seq)
    call = row.summary_call
    result = getattr(call, "result", None)
    edits = load_edits(row.edits)
    view = fold_path(read_path(conversation, row.parent))
    shown = list_changes(view, edits, row.kind, list_pins(conversation))
    known = explain_change(conversation, row)
    is_left = any(change.keep and not change.keep.is_pinned for change in shown)
    undoable = can_undo(conversation, row)
    others = conversation.transformations.aggregate(
        previous=Max("seq", filter=Q(seq__lt=seq)), next=Min("seq", filter=Q(seq__gt=seq))
    )
    return Reduction(
        **{name: getattr(row, name) for name in COLUMNS},
        kind_label=describe_kind(row.kind),
        outcome_label=row.get_outcome_display(),
        policy=json.dumps(json.loads(row.policy), indent=2),
        policy_name=name_preset(json.loads(row.policy)["name"]),
        changes=shown,
        turn=row.turn.number if row.turn else None,
        summary_cost_micros=result.cost_micros if result else None,
        summary_model=call.model if call else "",
        summary_text=_summary(edits) if row.kind == "summary" else "",
        extra=describe_decision(row.decision),
        actor=row.actor.get_username() if row.actor else "",
        can_restore=can_restore(row) and is_left and not known.is_taken_back,
        can_undo=undoable,
        is_settled=is_manual(row) and not undoable and not known.is_taken_back,
        why=known,
        summary=build_summary_card(conversation, row),
        recalls=count_recalls(conversation, row, view, edits),
        **others,
    )


def list_changes(
    view: View, edits: tuple[Edit, ...], kind: str = "", held: frozenset[Pin] = frozenset()
) -> tuple[Change, ...]:
    """Return the blocks of each edit beside those they replaced."""
    found: list[Change] = []
    messages = {message.seq: message for message in view.messages}
    calls = _name_calls(view) if edits else {}
    for edit in edits:
        match edit:
            case SpliceBlocks():
                found.append(_block_change(messages[edit.seq], edit, calls, kind, held))
            case SpliceMessages():
                for message in view.messages:
                    if edit.first <= message.seq <= edit.last:
                        keep = _keep(message, held)
                        found.append(_change(message, _message_text(message), "", keep))
                for put in (Message.parse(*parts) for parts in edit.messages):
                    messages[put.seq] = put
                    keep = _keep(put, held)
                    found.append(_change(put, "", _text(put.blocks), keep))
            case _:
                assert_never(edit)
    return tuple(found)


def _keep(message: Message, held: frozenset[Pin]) -> PinState | None:
    """Return the pin state of a message; None for what the API compacted, which has no original."""
    if message.seq == NUMBER:
        return None
    return PinState(message_id(message.seq), message.seq in held)


def _name_calls(view: View) -> dict[str, str]:
    """Return what people read of each tool call, by its id."""
    answers = (message for message in view.messages if message.kind == "answer")
    return {call.id: _name_call(call) for message in answers for call in message.shape.calls}


def _name_call(call: Call) -> str:
    subject = call.label.partition(" ")[2]
    return f"{name_tool(call.name)} · {subject}" if subject else str(name_tool(call.name))


def _block_change(
    message: Message, edit: SpliceBlocks, calls: dict[str, str], kind: str, held: frozenset[Pin]
) -> Change:
    dropped = message.blocks[edit.at : edit.at + edit.drop]
    put = tuple(Block(text) for text in edit.blocks)
    ids = [block.id for block in (*dropped, *put) if read_value(block) and block.id]
    name = name_original(message.seq, put[0], kind) if put else ""
    keep = PinState(name, bool({name, message.seq} & held)) if name else None
    made = _change(message, _text(dropped), _text(put), keep)
    place = ", ".join([made.place, f"block {edit.at + 1}", *ids[:1]])
    return replace(made, title=calls.get(ids[0], made.title) if ids else made.title, place=place)


def _change(message: Message, before: str, after: str, keep: PinState | None) -> Change:
    title, place = str(_TITLES[message.kind]), f"{message.kind} {message.seq}"
    return Change(title, place, before, after, len(before), len(after), keep)


def _message_text(message: Message) -> str:
    """Return the text of a message; as it is stored where it cannot be split into blocks."""
    try:
        return _text(message.blocks)
    except WireError:
        return message.content


def _text(blocks: tuple[Block, ...]) -> str:
    return "\n\n".join(map(_format_block, blocks))


def _format_block(block: Block) -> str:
    """Format a block as text; a malformed one, which a repair may have left out, as it is."""
    try:
        return format_block_text(block.value)
    except DAMAGE:
        return block.text


def format_block_text(block: dict[str, Any]) -> str:
    """Format a content block as text for people; images and documents are described."""
    match block["type"]:
        case "text":
            return str(block["text"])
        case "thinking":
            return str(block.get("thinking", ""))
        case "compaction":
            return str(block.get("content") or "")
        case "tool_result":
            return read_result_text(block.get("content", ""))
        case "tool_use":
            return f"{block['name']} {json.dumps(block['input'], ensure_ascii=False, indent=2)}"
        case "document" if (text := read_text(block)) is not None:
            return f"{describe_block(block)}\n{text}"
        case _:
            return describe_block(block)


def _summary(edits: tuple[Edit, ...]) -> str:
    texts: list[str] = []
    for edit in edits:
        if isinstance(edit, SpliceBlocks):
            texts += edit.blocks
        else:
            texts += [text for _, _, content in edit.messages for text in wire.split(content)]
    return "\n".join(format_block_text(Block(text).value) for text in texts)
