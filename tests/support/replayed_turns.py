"""Copies a turn that was played before: new rows, for a fraction of the cost.

Most tests of what is stored begin with the same turn, for which the services take two hundred
statements. So the rows of the first play of each kind are kept, and later ones are copies of them,
with their own keys and times, linked into the chain of their own conversation. They pass the same
triggers as played ones: a test compares both, and `verify` accepts them. A turn whose play depends
on more than its arguments, on other budgets or a limit that is near, is played.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.db import models, transaction
from django.utils import timezone

from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.prices import load_price_list
from conversations.budgets.windows import lock_slots, update_windows
from conversations.log.chain import OWNED, compute_link
from conversations.log.leases import read_lease_duration
from conversations.log.search_index import INDEXED_KINDS, index_messages, index_title
from conversations.log.texts import lock_texts_shared
from conversations.models import (
    ApiCall,
    Blob,
    BudgetWindow,
    Chained,
    Conversation,
    Envelope,
    Message,
    Reservation,
    ToolCall,
    Turn,
    User,
)
from conversations.telemetry import metrics

R = TypeVar("R", bound=models.Model)
#: Factor by which the events of a copied turn are closer together.
FASTER = 500
#: A limit is far away if it exceeds the possible use, in micro-dollars, this many times.
FAR, MOST_HELD = 10, 100_000


@dataclass(frozen=True, slots=True)
class Tape:
    """What a turn has stored: its rows in order, and the texts that they reference."""

    conversation: Conversation
    turn: Turn
    texts: tuple[models.Model, ...]
    links: tuple[Chained, ...]
    others: tuple[models.Model, ...]
    window_id: int
    spent: int

    @classmethod
    def of(cls, turn: Turn) -> Tape:
        """Record a turn that was just played."""
        links: list[Chained] = []
        for kind, path in OWNED.items():
            links += kind._default_manager.filter(**{path: turn.conversation_id})
        calls = ApiCall.objects.filter(turn=turn).select_related("result")
        held = Reservation.objects.filter(call__turn=turn).order_by("pk")
        tools = ToolCall.objects.filter(turn=turn).order_by("pk")
        blobs = {call.messages_id for call in calls} | {tool.output_id for tool in tools}
        envelopes = Envelope.objects.filter(pk__in={call.envelope_id for call in calls})
        return cls(
            Conversation.objects.get(pk=turn.conversation_id),
            turn,
            (*Blob.objects.filter(pk__in=blobs - {None}), *envelopes),
            tuple(sorted(links, key=lambda row: row.link)),
            (*held, *tools),
            held[0].window_id,
            sum(call.result.cost_micros for call in calls),
        )


_tapes: dict[str, Tape] = {}


def forget() -> None:
    """Have the next turn of each kind played: for tests of what happens meanwhile."""
    _tapes.clear()


def once_more(user: User, model: str, kind: str, play: Callable[[], Turn]) -> Turn:
    """Return a turn as `play` makes it; the first of its kind is played, later ones are copied."""
    with transaction.atomic():
        window = _window(user)
        kind = repr((kind, load_price_list(model, timezone.now()), resolve_turn_caps(user.pk)))
        if window is not None and kind in _tapes:
            return _given(_tapes[kind], user, window)
    turn = play()
    if window is not None:
        _tapes[kind] = Tape.of(turn)
    return turn


def _window(user: User) -> BudgetWindow | None:
    """Return the window that a turn counts in, if its allowance is the only one and is large."""
    slots = lock_slots(user.pk)
    if len(slots) != 1 or metrics.is_on():
        return None
    rule, standing, window = slots[0].budget.rule, slots[0].status, slots[0].window
    if (rule.unit, rule.percents) != ("money", (50, 80, 95)):
        return None
    window.limit = standing.limit
    is_far = (standing.spent + standing.held + MOST_HELD) * FAR < standing.limit
    return window if is_far else None


def _given(tape: Tape, user: User, window: BudgetWindow) -> Turn:
    lock_texts_shared()
    for text in tape.texts:
        type(text)._default_manager.bulk_create([text], ignore_conflicts=True)
    copy = _Copy(tape.conversation.created_at)
    copy.keys[User, tape.conversation.owner_id] = user.pk
    copy.keys[BudgetWindow, tape.window_id] = window.pk
    conversation = copy.add(tape.conversation, links=0, chain="")
    ended_at = copy.at(tape.turn.ended_at or tape.turn.created_at)
    turn = copy.add(tape.turn, lease_until=ended_at + read_lease_duration())
    index_title(conversation=conversation)
    for row in tape.links:
        now = {"limit": window.limit} if getattr(row, "limit", None) is not None else {}
        link = copy.add(row, chain=conversation.chain, **now)
        conversation.links, conversation.chain = link.link, link.chain
        if isinstance(link, Message) and link.kind in INDEXED_KINDS:
            index_messages(conversation=conversation, rows=[link])
    for other in tape.others:
        copy.add(other)
    ends = {"links": conversation.links, "chain": conversation.chain}
    Conversation.objects.filter(pk=conversation.pk).update(**ends)
    window.spent += tape.spent
    update_windows([window], "spent", "limit")
    return turn


@dataclass(slots=True)
class _Copy:
    """A copy of rows with new keys, names and times."""

    begun_at: datetime
    now: datetime = field(default_factory=timezone.now)
    #: The new keys, by kind and old key.
    keys: dict[tuple[Any, Any], Any] = field(default_factory=dict)

    def add(self, row: R, **changes: Any) -> R:
        """Insert a copy of a row with these changes; a link covers the chain before it."""
        kind = type(row)
        values = {one.attname: self._new(one, row) for one in kind._meta.concrete_fields}
        new = kind(**values | changes)
        if isinstance(new, Chained):
            new.chain = compute_link(new.chain, new)
        # raw=True: the rows' automatic times are those of the copy.
        new.save_base(raw=True, force_insert=True)
        self.keys[kind, row.pk] = new.pk
        return new

    def _new(self, one: models.Field[Any, Any], row: models.Model) -> Any:
        value = getattr(row, one.attname)
        match value:
            case _ if one.primary_key:
                return None
            case _ if one.remote_field:
                return self.keys.get((one.remote_field.model, value), value)
            case datetime():
                return self.at(value)
            case UUID():
                return uuid4()
            case _:
                return value

    def at(self, time: datetime) -> datetime:
        return self.now + (time - self.begun_at) / FASTER
