"""One transformation for people: why it happened and each changed block before and after."""

from __future__ import annotations

import json
from typing import Any, assert_never

from django.http import Http404

from conversations.context.edits import Edit, SpliceBlocks, SpliceMessages, load
from conversations.context.view import Block, Message, View
from conversations.models import Conversation, Transformation
from conversations.queries.cards import result_text
from conversations.queries.path import path, step
from conversations.queries.shapes import Change, Reduction
from conversations.queries.words import explained


def reduction(conversation: Conversation, seq: int) -> Reduction:
    """Give the transformation with that number; raises Http404."""
    rows = Transformation.objects.select_related("turn", "summary_call", "summary_call__result")
    row = rows.filter(conversation=conversation, seq=seq).first()
    if row is None:
        raise Http404("no such transformation")
    call = row.summary_call
    result = getattr(call, "result", None)
    edits = load(row.edits)
    return Reduction(
        seq=row.seq,
        kind=row.kind,
        kind_label=explained(row.kind),
        outcome=row.outcome,
        note=row.note,
        reason=row.reason,
        number=row.number,
        threshold=row.threshold,
        source=row.source,
        setting=row.setting,
        policy=json.dumps(json.loads(row.policy), indent=2),
        policy_name=json.loads(row.policy)["name"],
        tokens_before=row.tokens_before,
        tokens_after=row.tokens_after,
        bytes_before=row.bytes_before,
        bytes_after=row.bytes_after,
        changes=changes(_view_before(conversation, row), edits),
        created_at=row.created_at,
        turn=row.turn.number if row.turn else None,
        summary_cost_micros=result.cost_micros if result else None,
        summary_model=call.model if call else "",
        summary_text=_summary(edits) if row.kind == "summary" else "",
    )


def _view_before(conversation: Conversation, row: Transformation) -> View:
    view = View()
    for entry in path(conversation, row.parent):
        view = step(view, entry)
    return view


def changes(view: View, edits: tuple[Edit, ...]) -> tuple[Change, ...]:
    """Put each edit's blocks side by side with what they replaced."""
    found: list[Change] = []
    messages = {message.seq: message for message in view.messages}
    for edit in edits:
        match edit:
            case SpliceBlocks():
                found.append(_block_change(messages[edit.seq], edit))
            case SpliceMessages():
                found.extend(
                    _change(_title(message), _text(message.blocks), "")
                    for message in view.messages
                    if edit.first <= message.seq <= edit.last
                )
            case _:
                assert_never(edit)
    return tuple(found)


def _block_change(message: Message, edit: SpliceBlocks) -> Change:
    dropped = message.blocks[edit.at : edit.at + edit.drop]
    put = tuple(Block(text) for text in edit.blocks)
    ids = [block.id for block in (*dropped, *put) if block.id]
    title = f"{_title(message)}, block {edit.at + 1}" + (f", {ids[0]}" if ids else "")
    return _change(title, _text(dropped), _text(put))


def _title(message: Message) -> str:
    return f"{message.kind} {message.seq}"


def _change(title: str, before: str, after: str) -> Change:
    return Change(title, before, after, len(before), len(after))


def _text(blocks: tuple[Block, ...]) -> str:
    return "\n\n".join(block_text(block.value) for block in blocks)


def block_text(block: dict[str, Any]) -> str:
    """Give a content block as text for people; images and documents by name."""
    match block["type"]:
        case "text":
            return str(block["text"])
        case "thinking":
            return str(block.get("thinking", ""))
        case "tool_result":
            return result_text(block.get("content", ""))
        case "tool_use":
            return f"{block['name']} {json.dumps(block['input'], ensure_ascii=False, indent=2)}"
        case kind:
            return f"[{kind}]"


def _summary(edits: tuple[Edit, ...]) -> str:
    texts = [text for edit in edits if isinstance(edit, SpliceBlocks) for text in edit.blocks]
    return "\n".join(block_text(Block(text).value) for text in texts)
