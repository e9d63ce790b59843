"""Repair a view that the API refused although it breaks no known rule.

The API may change a rule, and a gateway may have rules of its own. If the message of the API names
a part of the request, that part is left out; otherwise the newest blocks that are not plain text,
which no earlier request had. The prompt that is being answered is never left out on a guess: if
nothing else helps the turn fails, and `leave_out_turn` removes its messages from the next request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from conversations.context.policy.policy import Policy
from conversations.context.steps.removed_lists import write_left_out
from conversations.context.steps.repair import Repair, find_broken_rule, find_named
from conversations.context.steps.repair_blocks import (
    BY,
    NO_PART,
    NO_RESULT,
    write_result,
    write_text,
)
from conversations.context.steps.repair_drafts import Draft, Drafts
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import edits, wire
from conversations.context.view.edits import Transformation, Trigger
from conversations.context.view.view import THINKING, Block, View

TURN_LEFT_OUT = mark_recorded(
    gettext_noop(
        "This message and what followed it could not be sent. You can still read them here; they"
        " are not sent to the model again."
    )
)
#: Beginnings of messages about the request's parameters, which no change of the history can fix.
_PARAMETER = re.compile(
    r"\s*[`\"']?(?:tools|tool_choice|system|model|max_tokens|thinking|output_config|output_format"
    r"|context_management|compaction|mcp_servers|metadata|temperature|top_[pk]|stop_sequences"
    r"|stream|service_tier|container|inference_geo|speed|betas?|anthropic-[a-z]+|cache_control)\b"
)
#: Tool call ids in the API's messages.
_ID = re.compile(r"\b(?:srv|mcp)?toolu_[a-zA-Z0-9_-]+|\bcall_[a-zA-Z0-9_-]+")
#: The path of a part of the request in the API's messages, and of a field that it does not accept.
_PATH = re.compile(r"messages\.\d+(?:\.\w+)*")
_FIELD = re.compile(
    r"messages\.\d+\.content\.\d+\.(\w+)\.(citations\b|\w+(?=:))[^:]*: Extra inputs"
)
#: Ids of uploaded files in the API's messages.
_FILE = re.compile(r"\bfile_[a-zA-Z0-9_-]+")
#: Blocks of an answer that every gateway accepts.
_PLAIN = ("text", "tool_use", *THINKING)


def names_parameter(words: str) -> bool:
    """Return whether the API objects to a parameter of the request and not to its messages."""
    return _PARAMETER.match(words) is not None


def find_place(words: str) -> str:
    """Return the path of what the API objects to; "" if it names none."""
    found = _PATH.search(words)
    return found[0] if found else ""


def list_repairs(view: View, words: str, first: int) -> tuple[Transformation, ...]:
    """Return changes that may help against a refusal with this message, the most likely first.

    `first` is the number of the turn's first message.
    """
    found: list[Transformation] = []
    for way in _list_ways(view, words, first):
        repair = Repair(Drafts(view))
        way(repair)
        change = repair.build(words)
        is_new = change.view_after.body not in {view.body, *(one.view_after.body for one in found)}
        if is_new and find_broken_rule(change.view_after) is None:
            found.append(change)
    return tuple(found)


def leave_out_turn(
    view: View, first: int, reason: str, before: View | None, policy: Policy
) -> Transformation:
    """Leave out the messages of a turn whose request stayed refused, except what was done in it.

    `before` is the view before a repair that did not help: what the repair removed is put back.
    """
    source = before or view
    removed = [message for message in source.messages if message.seq >= first]
    record = write_left_out(source, removed, policy)
    drafts = Drafts(view)
    if before is not None:
        now = {draft.seq: draft for draft in drafts.rows}
        drafts.rows = [_put_back(draft, now.get(draft.seq)) for draft in Drafts(before).rows]
    drafts.rows = [draft for draft in drafts.rows if draft.seq < first]
    if record:
        drafts.insert(Draft(removed[0].seq, "prompt", [Block(record, BY)]))
    found = drafts.list_edits()
    trigger = Trigger(max(1, len(found)), 0, "counted")
    change = edits.build_transformation(view, BY, trigger, found, TURN_LEFT_OUT)
    return replace(change, reason=reason)


def _put_back(before: Draft, now: Draft | None) -> Draft:
    """Return a message as it was, without its thinking; unchanged if the two are equal."""
    before.blocks = _list_plain(before)
    is_same = now is not None and _texts(before.blocks) == _texts(_list_plain(now))
    return now if now is not None and is_same else before


def _list_plain(draft: Draft) -> list[Block]:
    return [block for block in draft.blocks if block.type not in THINKING]


def _texts(some: list[Block]) -> list[str]:
    return [block.text for block in some]


def _list_ways(view: View, words: str, first: int) -> Iterator[Callable[[Repair], None]]:
    at, block = find_named(Drafts(view), words)
    if at is not None:
        if field := _FIELD.search(words):
            role = view.messages[at].role
            yield lambda repair: _leave_out_field(repair, role, field[1], field[2])
        if block is not None:
            yield lambda repair: _leave_out_block(repair, repair.drafts.rows[at], block)
        yield from _list_named_calls(words)
        yield lambda repair: _soften(repair, repair.drafts.rows[at])
        yield lambda repair: _leave_out_exchange(repair, at, first)
        if view.messages[at].seq == first:
            # The API named the prompt itself, so leaving out another part would not help.
            return
    else:
        yield from _list_named_calls(words)
        yield from _list_named_files(words)
    yield _soften_newest
    yield _leave_out_odd
    yield lambda repair: _leave_out_before(repair, first)


def _list_named_calls(words: str) -> Iterator[Callable[[Repair], None]]:
    calls = frozenset(_ID.findall(words))
    if calls:
        yield lambda repair: _leave_out_calls(repair, calls)


def _list_named_files(words: str) -> Iterator[Callable[[Repair], None]]:
    """Yield the way that leaves out a file which the API does not have, wherever it is sent."""
    files = [f'"file_id":"{name}"' for name in _FILE.findall(words)]
    if files:
        yield lambda repair: _soften_holders(repair, files)


def _soften_holders(repair: Repair, parts: list[str]) -> None:
    """Replace by notes the blocks of prompts and results that have one of these parts."""
    for draft in repair.drafts.rows:
        if draft.kind != "answer":
            new = [_soften_block(b) if _has_part(b, parts) else b for b in draft.blocks]
            if new != draft.blocks:
                draft.blocks = new
                repair.done.add(draft.kind)


def _has_part(block: Block, parts: list[str]) -> bool:
    return any(part in block.text for part in parts)


def _leave_out_block(repair: Repair, draft: Draft, at: int) -> None:
    """Leave out one block, a call with its result; a result or a part of a prompt gets a note."""
    if at >= len(draft.blocks):
        return
    block = draft.blocks[at]
    if block.type == "tool_use":
        _leave_out_calls(repair, frozenset({block.id}))
        return
    if block.type == "tool_result":
        draft.blocks[at] = write_result(block.id, NO_RESULT)
    elif draft.is_prompt and len(draft.blocks) > 1:
        draft.blocks[at] = write_text(NO_PART)
    elif not draft.is_prompt:
        del draft.blocks[at]
        repair.mend()
    else:
        return
    repair.done.add(draft.kind)


def _leave_out_field(repair: Repair, role: str, kind: str, name: str) -> None:
    """Leave out a field of all blocks of a type in the messages of a role."""
    for draft in repair.drafts.rows:
        if draft.role == role:
            draft.blocks = [_drop_field(block, kind, name) for block in draft.blocks]
    repair.done.add("order")


def _drop_field(block: Block, kind: str, name: str) -> Block:
    if block.type != kind or name not in block.value:
        return block
    kept = {key: part for key, part in block.value.items() if key != name}
    return Block(wire.encode(kept), BY)


def _leave_out_calls(repair: Repair, calls: frozenset[str]) -> None:
    for draft in repair.drafts.rows:
        kept = [block for block in draft.blocks if not _names(block, calls)]
        if len(kept) < len(draft.blocks):
            draft.blocks = kept
            repair.done.add(draft.kind)
    repair.mend()


def _names(block: Block, calls: frozenset[str]) -> bool:
    return block.id in calls or str(block.value.get("tool_use_id", "")) in calls


def _soften_newest(repair: Repair) -> None:
    """Soften the messages after the last answer, which no earlier request had."""
    for draft in reversed(repair.drafts.rows):
        if draft.kind == "answer":
            return
        _soften(repair, draft)


def _soften(repair: Repair, draft: Draft) -> None:
    """Replace by notes the blocks of a message that are not plain text; answers stay."""
    if draft.kind == "answer":
        return
    new = [_soften_block(block) for block in draft.blocks]
    if new != draft.blocks:
        draft.blocks = new
        repair.done.add(draft.kind)


def _soften_block(block: Block) -> Block:
    if block.type == "tool_result":
        return block if block.by == BY else write_result(block.id, NO_RESULT)
    return block if block.type == "text" else write_text(NO_PART)


def _leave_out_odd(repair: Repair) -> None:
    """Leave out the blocks of the last answer that are neither text, calls nor thinking."""
    answers = [draft for draft in repair.drafts.rows if draft.kind == "answer"]
    for draft in answers[-1:]:
        kept = [block for block in draft.blocks if block.type in _PLAIN]
        if len(kept) < len(draft.blocks):
            draft.blocks = kept
            repair.done.add("answer")
            repair.mend()


def _leave_out_exchange(repair: Repair, at: int, first: int) -> None:
    """Leave out the exchange of a message, unless it is the one being answered."""
    if repair.drafts.rows[at].seq >= first:
        return
    some = repair.drafts.list_exchange(at)
    repair.drafts.remove([draft for draft in some if draft.seq < first])
    repair.done.add("exchange")
    repair.mend()


def _leave_out_before(repair: Repair, first: int) -> None:
    """Leave out the exchange before the one being answered."""
    rows = enumerate(repair.drafts.rows)
    before = [at for at, draft in rows if draft.blocks and draft.seq < first]
    if before:
        _leave_out_exchange(repair, before[-1], first)
