"""Forks: a new conversation that continues from a turn of another one.

The log is copied up to the end of that turn, other versions included. Every entry keeps its number,
so recorded changes apply, originals can be recalled, and the model's view is the same byte for
byte. Calls are not copied: their cost was paid in the first conversation, and the last report is
read there. Turns and transformations keep their dates, so they count on days that may be closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import uuid4

from django.db.models import Model, Q
from django.utils.translation import gettext as _

from conversations.budgets.usage.closed_days import reopen_days
from conversations.db import transact
from conversations.log.chain import append_rows
from conversations.log.search_index import index_messages, index_title
from conversations.models import (
    Attachment,
    Chained,
    Conversation,
    Message,
    ToolCall,
    ToolSwitch,
    Transformation,
    Turn,
)
from conversations.turns.prompts import RUNNING, SendError, lock_for_send
from conversations.turns.versions import find_last_entry

M = TypeVar("M", bound=Model)
MOST_TITLE = 200
#: Fields that are not copied.
_OWN = frozenset(
    ("id", "conversation_id", "link", "chain", "public_id", "client_id", "summary_call_id")
)


@transact
def fork_conversation(*, turn: Turn) -> Conversation:
    """Copy a conversation up to the end of a turn; raises SendError while that turn runs."""
    row = lock_for_send(turn.conversation)
    turn.refresh_from_db()
    if turn.is_live:
        raise SendError("busy", _(RUNNING))
    end = _find_end(row, turn)
    copy = Conversation.objects.create(
        owner_id=row.owner_id,
        title=_name_copy(row.title),
        titled_by=row.titled_by,
        model=row.model,
        instructions=row.instructions,
        effort=row.effort,
        policy=row.policy,
        cost_centre_id=row.cost_centre_id,
        in_full_always=row.in_full_always,
        asks_before_egress=row.asks_before_egress,
        erase_at=row.erase_at,
        head=end,
        tip=end,
        leaf=turn.number,
        forked_from=turn,
    )
    index_title(conversation=copy)
    turns = _copy_turns(row, copy, end)
    messages = [_copy_row(one, copy, turns) for one in row.messages.filter(seq__lte=end)]
    changes = [_copy_row(one, copy, turns) for one in row.transformations.filter(seq__lte=end)]
    entries: list[Message | Transformation] = [*messages, *changes]
    entries.sort(key=lambda entry: entry.seq)
    pins = row.pins.filter(Q(seq=None) | Q(seq__lte=end)).order_by("link")
    rows: list[Chained] = [*entries, *(_copy_row(pin, copy, turns) for pin in pins)]
    append_rows(rows, copy)
    _copy_tool_calls(messages, turns)
    _copy_attachments(row, copy)
    ToolSwitch.objects.bulk_create(_copy_row(one, copy, {}) for one in row.tool_switches.all())
    index_messages(conversation=copy, rows=messages)
    reopen_days(copy.turns.all(), copy.transformations.all())
    return copy


def _name_copy(title: str) -> str:
    """Return a title that says, once, that the conversation is a fork."""
    word = _("(fork)")
    if not title or title.endswith(word):
        return title
    return f"{title[: MOST_TITLE - len(word) - 1]} {word}"


def _find_end(row: Conversation, turn: Turn) -> int:
    """Return the last entry of a turn's path before the turns that follow it."""
    if turn.number == row.leaf:
        return row.tip
    after = Message.objects.filter(conversation=row, kind="prompt", turn__parent=turn.number)
    found = after.order_by("seq").values_list("parent", flat=True).first()
    return found or turn.tip or find_last_entry(turn)


def _copy_row(row: M, copy: Conversation, turns: dict[int, Turn]) -> M:
    values: dict[str, Any] = {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname not in _OWN
    }
    if values.get("turn_id") is not None:
        values["turn_id"] = turns[values["turn_id"]].pk
    return type(row)(conversation=copy, **values)


def _copy_turns(row: Conversation, copy: Conversation, end: int) -> dict[int, Turn]:
    """Copy the turns that began before `end`; return the copies by the keys of the originals."""
    begun = row.messages.filter(kind="prompt", seq__lte=end).values("turn")
    found = {one.pk: one for one in row.turns.filter(pk__in=begun).order_by("number")}
    copies: dict[int, Turn] = {key: _copy_row(one, copy, {}) for key, one in found.items()}
    for one in copies.values():
        # A path that continues after `end` has no stored end in the copy.
        one.tip = one.tip if one.tip <= end else 0
        one.client_id, one.retry_of_id, one.continues_id = uuid4(), None, None
    Turn.objects.bulk_create(copies.values())
    for key, one in copies.items():
        first = found[key]
        one.created_at = first.created_at
        one.retry_of = copies.get(first.retry_of_id or 0)
        one.continues = copies.get(first.continues_id or 0)
    Turn.objects.bulk_update(copies.values(), ["created_at", "retry_of", "continues"])
    return copies


def _copy_attachments(row: Conversation, copy: Conversation) -> None:
    found = list(row.attachments.order_by("pk"))
    copies = [_copy_row(one, copy, {}) for one in found]
    Attachment.objects.bulk_create(copies)
    # A retention rule counts from the day on which a file was attached, in a copy, too.
    for one, first in zip(copies, found, strict=True):
        one.created_at = first.created_at
    Attachment.objects.bulk_update(copies, ["created_at"])


def _copy_tool_calls(messages: Iterable[Message], turns: dict[int, Turn]) -> None:
    answers = {(one.turn_id, one.seq): one for one in messages if one.kind == "answer"}
    rows = ToolCall.objects.filter(turn__in=turns).select_related("answer").order_by("pk")
    copies = []
    for row in rows:
        turn = turns[row.turn_id]
        answer = answers.get((turn.pk, row.answer.seq))
        if answer is not None:
            values = {
                field.attname: getattr(row, field.attname)
                for field in ToolCall._meta.concrete_fields
                if field.attname not in ("id", "turn_id", "answer_id")
            }
            copies.append(ToolCall(turn=turn, answer=answer, **values))
    ToolCall.objects.bulk_create(copies)
