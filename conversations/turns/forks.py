"""Forks: a new conversation that continues from a turn of another one.

The log is copied up to the end of that turn, other versions included. Every entry keeps its number,
so recorded changes apply, originals can be recalled, and the model's view is the same byte for
byte. Calls are not copied: their cost was paid in the first conversation, and the last report is
read there. Turns and transformations keep their dates, so they count on days that may be closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model, Q
from django.utils.translation import gettext as _

from conversations.budgets.usage.closed_days import reopen_days
from conversations.context.view.attachment_refs import may_hold_reference
from conversations.db import transact
from conversations.log.chain import append_rows
from conversations.log.findings import read_decodable
from conversations.log.prepared_rows import shape_of
from conversations.log.search_index import copy_index, index_title
from conversations.models import (
    Attachment,
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
_Entry = Message | Transformation
MOST_TITLE = 200
#: Fields that are not copied.
_OWN = frozenset(
    ("id", "conversation_id", "link", "chain", "public_id", "client_id", "summary_call_id")
)
#: A new value of a UUID column.
_NEW_KEY = {"sqlite": "lower(hex(randomblob(16)))", "postgresql": "gen_random_uuid()"}


@dataclass(frozen=True, slots=True)
class _Origin:
    """What is copied: the conversation, its entries up to `end`, and the turns that they begin."""

    row: Conversation
    turn: Turn
    end: int
    turns: list[Turn]


def fork_conversation(*, turn: Turn) -> Conversation:
    """Copy a conversation up to the end of a turn; raises SendError while that turn runs.

    A copy of 10,000 entries takes seconds, and the first conversation goes on meanwhile: it is
    locked only to see where the copy ends, because entries up to there never change.
    """
    origin = _find_origin(turn)
    return _write_copy(origin, _read_entries(origin))


@transact
def _find_origin(turn: Turn) -> _Origin:
    row = lock_for_send(turn.conversation)
    turn.refresh_from_db()
    if turn.is_live:
        raise SendError("busy", _(RUNNING))
    end = _find_end(row, turn)
    begun = row.messages.filter(kind="prompt", seq__lte=end).values("turn")
    return _Origin(row, turn, end, list(row.turns.filter(pk__in=begun).order_by("number")))


def _read_entries(origin: _Origin) -> list[_Entry]:
    """Read what is copied; of a message that cannot be decoded its place alone."""
    messages = origin.row.messages.filter(seq__lte=origin.end)
    changes = origin.row.transformations.filter(seq__lte=origin.end)
    rows: list[_Entry] = [
        *read_decodable(lambda: list(messages)),
        *read_decodable(lambda: list(changes)),
    ]
    return sorted(rows, key=lambda entry: entry.seq)


@transact
def _write_copy(origin: _Origin, entries: list[_Entry]) -> Conversation:
    """Write the copy, visible when all of it is there; raises SendError if the first one goes."""
    row = origin.row
    copy = _create_copy(origin, _find_turn_in_full(entries, origin.turns))
    turns = _copy_turns(origin, copy)
    copies = [_copy_row(one, copy, turns) for one in entries]
    pins = row.pins.filter(Q(seq=None) | Q(seq__lte=origin.end)).order_by("link")
    append_rows([*copies, *(_copy_row(pin, copy, turns) for pin in pins)], copy)
    _copy_tool_calls(origin, copy)
    _copy_attachments(row, copy, entries)
    ToolSwitch.objects.bulk_create(_copy_row(one, copy, {}) for one in row.tool_switches.all())
    copy_index(origin=row, copy=copy)
    # What was erased meanwhile may be missing from the copy. Its folder may be another one by now.
    copy.folder_id = lock_for_send(row).folder_id
    if copy.folder_id is not None:
        copy.save(update_fields=["folder"])
    reopen_days(copy.turns.all(), copy.transformations.all())
    return copy


def _create_copy(origin: _Origin, in_full_turn: int) -> Conversation:
    row = origin.row
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
        in_full_turn=in_full_turn,
        web_search=row.web_search,
        asks_before_egress=row.asks_before_egress,
        erase_at=row.erase_at,
        head=origin.end,
        tip=origin.end,
        leaf=origin.turn.number,
        forked_from=origin.turn,
    )
    index_title(conversation=copy)
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


def _copy_row(row: M, copy: Conversation, turns: dict[int, int]) -> M:
    values: dict[str, Any] = {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname not in _OWN
    }
    if values.get("turn_id") is not None:
        values["turn_id"] = turns[values["turn_id"]]
    return type(row)(conversation=copy, **values)


def _copy_turns(origin: _Origin, copy: Conversation) -> dict[int, int]:
    """Copy the turns in the database, with their dates; return the new keys by the old ones."""
    same = [
        field.column
        for field in Turn._meta.concrete_fields
        if field.attname not in _OWN | {"tip", "retry_of_id", "continues_id"}
    ]
    key, columns = _NEW_KEY[connection.vendor], ", ".join(f'"{name}"' for name in same)
    with connection.cursor() as cursor:
        # A path that continues after the end has no stored end in the copy.
        cursor.execute(
            f"INSERT INTO conversations_turn"  # noqa: S608 - our own columns
            f" (conversation_id, public_id, client_id, tip, {columns})"
            f" SELECT %s, {key}, {key}, CASE WHEN tip <= %s THEN tip ELSE 0 END, {columns}"
            " FROM conversations_turn t WHERE conversation_id = %s AND EXISTS ("
            " SELECT 1 FROM conversations_message m"
            " WHERE m.turn_id = t.id AND m.kind = 'prompt' AND m.seq <= %s)",
            [copy.pk, origin.end, origin.row.pk, origin.end],
        )
    new = dict(copy.turns.values_list("number", "pk"))
    if len(new) < len(origin.turns):
        # Erased since it was read.
        raise Conversation.DoesNotExist(f"conversation {origin.row.pk}")
    keys = {one.pk: new[one.number] for one in origin.turns}
    tied = [
        Turn(pk=keys[one.pk], retry_of_id=keys.get(one.retry_of_id or 0),
             continues_id=keys.get(one.continues_id or 0))
        for one in origin.turns
        if one.retry_of_id or one.continues_id
    ]  # fmt: skip
    Turn.objects.bulk_update(tied, ["retry_of", "continues"], 100)
    return keys


def _find_turn_in_full(entries: Sequence[_Entry], turns: Sequence[Turn]) -> int:
    """Return the number of the next turn if the last choice is to send it in full, else 0."""
    for one in reversed(entries):
        if isinstance(one, Message):
            if one.kind == "prompt":
                break
        elif one.setting in ("full_once", "full_always", "full_never"):
            return turns[-1].number + 1 if one.setting == "full_once" else 0
    return 0


def _copy_attachments(row: Conversation, copy: Conversation, entries: Iterable[_Entry]) -> None:
    """Copy the files that the entries refer to."""
    texts = (one.content if isinstance(one, Message) else one.edits for one in entries)
    named = [text for text in texts if may_hold_reference(text)]
    rows = row.attachments.order_by("pk") if named else Attachment.objects.none()
    found = [one for one in rows if any(one.data_id in text for text in named)]
    copies = [_copy_row(one, copy, {}) for one in found]
    Attachment.objects.bulk_create(copies)
    # A retention rule counts from the day on which a file was attached, in a copy, too.
    for one, first in zip(copies, found, strict=True):
        one.created_at = first.created_at
    Attachment.objects.bulk_update(copies, ["created_at"])


def _copy_tool_calls(origin: _Origin, copy: Conversation) -> None:
    """Copy the calls of the copied answers, in the database."""
    same = shape_of(ToolCall, "id", "turn_id", "answer_id")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO conversations_toolcall (turn_id, answer_id, {same.columns()})"  # noqa: S608
            f" SELECT m.turn_id, m.id, {same.columns('c')} FROM conversations_toolcall c"
            " JOIN conversations_message a ON a.id = c.answer_id"
            " JOIN conversations_message m ON m.conversation_id = %s AND m.seq = a.seq"
            " WHERE a.conversation_id = %s AND a.seq <= %s ORDER BY c.id",
            [copy.pk, origin.row.pk, origin.end],
        )
