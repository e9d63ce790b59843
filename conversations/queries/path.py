"""The path of a conversation: its entries from the first to a tip, and what they fold to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from conversations.context import edits
from conversations.context.edits import TransformationKind
from conversations.context.gauge import Report
from conversations.context.view import Kind, Message, View
from conversations.models import ApiResult, Conversation, Transformation
from conversations.models import Message as MessageRow
from conversations.ports import Loaded

#: Entries after which a refused summary may be tried again.
REMEMBERED = 60


@dataclass(frozen=True, slots=True)
class Change:
    """A transformation on the path; one that was not applied has no edits."""

    seq: int
    kind: TransformationKind
    outcome: str
    edits: str


#: The whole log: each entry by its number, with the number of its parent.
Entries = dict[int, tuple[int, Message | Change]]


def entries(conversation: Conversation) -> Entries:
    """Give every entry of the log, of all branches."""
    found: Entries = {}
    messages = MessageRow.objects.filter(conversation=conversation).order_by("seq")
    for seq, parent, kind, content, estimate in messages.values_list(
        "seq", "parent", "kind", "content", "estimate"
    ):
        found[seq] = (parent, Message(seq, cast("Kind", kind), content, estimate))
    changes = Transformation.objects.filter(conversation=conversation).order_by("seq")
    for seq, parent, kind, outcome, text in changes.values_list(
        "seq", "parent", "kind", "outcome", "edits"
    ):
        found[seq] = (parent, Change(seq, cast("TransformationKind", kind), outcome, text))
    return found


def path(conversation: Conversation, tip: int | None = None) -> list[Message | Change]:
    """Give the entries up to `tip` (the conversation's own by default), first to last."""
    log = entries(conversation)
    found: list[Message | Change] = []
    at = conversation.tip if tip is None else tip
    while at:
        at, entry = log[at]
        found.append(entry)
    return found[::-1]


def step(view: View, entry: Message | Change) -> View:
    """Fold one entry into the view."""
    if isinstance(entry, Message):
        return view.append(entry)
    if entry.outcome != "applied":
        return view
    return edits.apply(view, entry.kind, edits.load(entry.edits))


def views(entries: list[Message | Change]) -> Iterator[tuple[int, View]]:
    """Give the view after each entry, with the entry's number."""
    view = View()
    for entry in entries:
        view = step(view, entry)
        yield entry.seq, view


def state(conversation: Conversation, model: str) -> Loaded:
    """Give what a turn starts from: the view, the last report, and rejected summaries."""
    entries = path(conversation)
    view = View()
    for entry in entries:
        view = step(view, entry)
    report, binding = _last_report(conversation, entries, model)
    return Loaded(view, report, binding, _rejected(entries))


def _last_report(
    conversation: Conversation, entries: list[Message | Change], model: str
) -> tuple[Report | None, str]:
    """Anchor on the last reply whose answer lies on the path; another model's is no report."""
    numbers = {entry.seq: entry.tokens for entry in entries if isinstance(entry, Message)}
    results = (
        ApiResult.objects.filter(
            call__conversation=conversation, call__purpose="reply", answer__isnull=False
        )
        .select_related("call", "answer")
        .defer("answer__content", "usage")
        .order_by("-call_id")
    )
    for result in results[:50]:
        answer = result.answer
        if answer is None or answer.seq not in numbers:
            continue
        call = result.call
        if call.model != model or result.input_tokens is None or result.status != "complete":
            return None, call.binding
        context = (
            result.input_tokens
            + (result.cache_read_tokens or 0)
            + (result.cache_write_tokens or 0)
            + (result.output_tokens or 0)
        )
        estimate = call.view_tokens + numbers[answer.seq]
        return Report(context, estimate, call.overhead_tokens, call.view_edits), call.binding
    return None, ""


def _rejected(entries: list[Message | Change]) -> int:
    """Count the summaries refused in a row; what lies far back no longer counts."""
    count = 0
    for entry in reversed(entries[-REMEMBERED:]):
        if isinstance(entry, Change) and entry.kind in ("summary", "rounds"):
            if entry.outcome == "applied":
                return count
            count += 1
    return count
