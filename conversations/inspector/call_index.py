"""The index of a conversation's calls and transformations, as figures, in four queries.

A call is named by its position among all calls of the conversation, from 1 on. Calls are only ever
added, so the name is stable. A call is on the shown path when the entry it was made at is, and its
answer too if it has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Case, F, TextField, Value, When

from conversations.agent.usage import START, read_start
from conversations.models import LIVE, ApiCall, Conversation, Message, Transformation
from conversations.reductions.words import describe_kind

_CALL = (
    "pk", "turn__number", "number", "purpose", "model", "tip", "sent_at", "estimated_tokens",
    "envelope_id", "turn__state", "result__status", "result__stop_reason", "result__error_type",
    "result__input_tokens", "result__output_tokens", "result__cache_read_tokens",
    "result__cache_write_tokens", "result__cost_micros", "result__cost_basis",
    "result__first_event_ms", "result__duration_ms", "result__answer__seq", "start",
)  # fmt: skip
#: The usage of the few calls whose figures are a sum over rounds.
_START = Case(
    When(result__usage__contains=f'"{START}"', then=F("result__usage")),
    default=Value("", output_field=TextField()),
)
_CHANGE = (
    "seq", "parent", "turn__number", "kind", "setting", "outcome", "note", "tokens_before",
    "tokens_after", "number", "threshold", "source", "summary_call_id", "created_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call; counts are None where nothing was reported, then `status` says why."""

    n: int
    id: int
    turn: int
    number: int
    purpose: str
    model: str
    tip: int
    sent_at: datetime
    estimated: int
    envelope: str
    status: str
    stop_reason: str
    error: str
    fresh: int | None
    written: int | None
    cache_read: int | None
    cache_write: int | None
    cost_micros: int | None
    cost_basis: str
    first_ms: int | None
    duration_ms: int | None
    answer: int | None
    is_on_path: bool
    #: Input tokens of the first round, where the API ran server tools between several rounds.
    start: int | None = None
    #: The model that declined before, where this call continued with another one.
    declined: str = ""

    @property
    def tokens_in(self) -> int | None:
        """Reported tokens of the request, whatever their price."""
        return self.billed_in if self.start is None else self.start

    @property
    def billed_in(self) -> int | None:
        """All tokens of input that were billed: the sum over the rounds."""
        if self.fresh is None:
            return None
        return self.fresh + (self.cache_read or 0) + (self.cache_write or 0)

    @property
    def cached_percent(self) -> int | None:
        total = self.billed_in
        return (self.cache_read or 0) * 100 // total if total else None

    @property
    def is_reply(self) -> bool:
        return self.purpose == "reply"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One transformation; `call` is the number of the call that wrote its summary."""

    seq: int
    turn: int | None
    kind: str
    #: The policy setting that fired, or what a person requested.
    setting: str
    outcome: str
    note: str
    before: int
    after: int
    number: int
    threshold: int
    source: str
    call: int | None
    created_at: datetime
    is_on_path: bool

    @property
    def words(self) -> str:
        return describe_kind(self.kind)

    @property
    def freed(self) -> int:
        """Estimated tokens it removed from the context; negative when it restored some."""
        return self.before - self.after if self.outcome == "applied" else 0


@dataclass(frozen=True, slots=True)
class CallIndex:
    """Calls by number and transformations by entry, of all branches; `path` is the shown one."""

    calls: tuple[CallRow, ...]
    changes: tuple[ChangeRow, ...]
    path: frozenset[int]
    #: Each entry's parent.
    parents: dict[int, int]
    #: Whether the path from the tip does not reach the first entry, because rows are missing.
    is_broken: bool = False

    def call(self, n: int) -> CallRow | None:
        return self.calls[n - 1] if 0 < n <= len(self.calls) else None

    def before(self, call: CallRow) -> CallRow | None:
        """Return the reply call before a call, on the path that led to it."""
        way, _ = _walk_path(self.parents, call.tip)
        earlier = (one for one in reversed(self.calls[: call.n - 1]) if one.is_reply)
        return next((one for one in earlier if _lies_on(way, one.tip, one.answer)), None)


def read_call_index(conversation: Conversation) -> CallIndex:
    """Read calls, transformations and the path from the first entry to the tip."""
    messages = Message.objects.filter(conversation=conversation)
    changes: list[tuple[Any, ...]] = list(
        Transformation.objects.filter(conversation=conversation)
        .order_by("seq")
        .values_list(*_CHANGE)
    )
    parents = dict(messages.values_list("seq", "parent"))
    parents.update((row[0], row[1]) for row in changes)
    path, is_broken = _walk_path(parents, conversation.tip)
    calls = ApiCall.objects.filter(conversation=conversation).annotate(start=_START)
    rows: list[tuple[Any, ...]] = list(calls.order_by("pk").values_list(*_CALL))
    numbers = {row[0]: n for n, row in enumerate(rows, 1)}
    return CallIndex(
        _mark_declined([_build_call(n, row, path) for n, row in enumerate(rows, 1)]),
        tuple(_build_change(row, numbers, path) for row in changes),
        path,
        parents,
        is_broken,
    )


def _walk_path(parents: dict[int, int], tip: int) -> tuple[frozenset[int], bool]:
    """Return the entries from the tip to the first one, and whether the path is broken."""
    found: set[int] = set()
    at = tip
    while at in parents and at not in found:
        found.add(at)
        at = parents[at]
    return frozenset(found), at != 0


def _lies_on(path: frozenset[int], tip: int, answer: int | None) -> bool:
    return (tip in path or not tip) and (answer is None or answer in path)


def _build_change(row: tuple[Any, ...], numbers: dict[int, int], path: frozenset[int]) -> ChangeRow:
    seq, _parent, turn, kind, setting, outcome, note, before, after, *rest = row
    number, threshold, source, call, at = rest
    return ChangeRow(
        seq, turn, kind, setting, outcome, note, before, after, number, threshold, source,
        numbers.get(call), at, seq in path,
    )  # fmt: skip


def _build_call(n: int, row: tuple[Any, ...], path: frozenset[int]) -> CallRow:
    key, turn, number, purpose, model, tip, sent_at, estimated, envelope, state, *result = row
    *result, answer, start = result
    status, stopped, error, fresh, written, read, stored, cost, basis, first, took = result
    return CallRow(
        n, key, turn or 0, number, purpose, model, tip, sent_at, estimated, envelope,
        status or ("running" if state in LIVE else "in doubt"),
        stopped or "", error or "", fresh, written, read, stored, cost, basis or "", first, took,
        answer, _lies_on(path, tip, answer), read_start(start),
    )  # fmt: skip


def _mark_declined(calls: list[CallRow]) -> tuple[CallRow, ...]:
    """Return the calls; those that continued with another model name the one that declined."""
    last: dict[int, CallRow] = {}
    found = []
    for call in calls:
        before = last.get(call.turn) if call.is_reply else None
        if before and before.status == "refused" and before.model != call.model:
            found.append(replace(call, declined=before.model))
        else:
            found.append(call)
        if call.is_reply:
            last[call.turn] = call
    return tuple(found)


def find_call_of_answer(conversation: Conversation, seq: int) -> int | None:
    """Return the number of the call that returned an answer."""
    calls = ApiCall.objects.filter(conversation=conversation)
    key = calls.filter(result__answer__seq=seq).values_list("pk", flat=True).first()
    return None if key is None else calls.filter(pk__lte=key).count()


def find_change_key(conversation: Conversation, seq: int) -> int | None:
    """Return the primary key of a transformation."""
    rows = conversation.transformations.filter(seq=seq)
    return rows.values_list("pk", flat=True).first()
