"""The path of a conversation: its entries from the first to a tip, and what they fold to.

Here, and nowhere else, the log is read for the model: what is sent is joined from stored text, in
which a prompt names its files (context/attached.py) and their texts are put in for the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from conversations.agent.job import LoadedConversation
from conversations.agent.usage import read_usage
from conversations.context.policy.gauge import Report, anchor_report
from conversations.context.steps import api_clearing, api_compaction
from conversations.context.steps.kinds import ASKS_MODEL, TransformationKind
from conversations.context.view import attachment_refs, edits, wire
from conversations.context.view.view import Kind, Message, View
from conversations.log.named_texts import texts_named
from conversations.log.tree import on_path
from conversations.models import ApiResult, Conversation, Transformation
from conversations.models import Message as MessageRow

#: Entries after which a refused summary may be tried again.
REMEMBERED = 60


@dataclass(frozen=True, slots=True)
class Change:
    """A transformation on the path; one that was not applied has no edits."""

    seq: int
    kind: TransformationKind
    outcome: str
    edits: str
    reason: str = ""
    #: Who did it by hand; None for what the engine does by itself.
    actor: int | None = None


#: The whole log: each entry by its number, with the number of its parent.
Entries = dict[int, tuple[int, Message | Change]]


def entries(conversation: Conversation) -> Entries:
    """Give every entry of the log, of all branches; raises MissingFile."""
    found: Entries = {}
    messages = MessageRow.objects.filter(conversation=conversation).order_by("seq")
    for seq, parent, kind, content, estimate in messages.values_list(
        "seq", "parent", "kind", "content", "estimate"
    ):
        found[seq] = (parent, Message(seq, cast("Kind", kind), content, estimate))
    changes = Transformation.objects.filter(conversation=conversation).order_by("seq")
    for seq, parent, kind, outcome, edited, reason, actor in changes.values_list(
        "seq", "parent", "kind", "outcome", "edits", "reason", "actor_id"
    ):
        made = Change(seq, cast("TransformationKind", kind), outcome, edited, reason, actor)
        found[seq] = (parent, made)
    return _with_files(conversation, found)


def _with_files(conversation: Conversation, found: Entries) -> Entries:
    """Put the texts of files in the place of their names."""
    names = {seq: digests for seq, (_, entry) in found.items() if (digests := _names(entry))}
    texts = texts_named(conversation.pk, {name for some in names.values() for name in some})
    for seq in names:
        parent, entry = found[seq]
        if isinstance(entry, Message):
            whole: Message | Change = replace(
                entry, content=attachment_refs.expand_references(entry.content, texts)
            )
        else:
            put = attachment_refs.expand_edits(edits.load_edits(entry.edits), texts)
            whole = replace(entry, edits=edits.dump_edits(put))
        found[seq] = (parent, whole)
    return found


def _names(entry: Message | Change) -> list[str]:
    if isinstance(entry, Message):
        return (
            [one.digest for one in attachment_refs.list_references(entry.content)]
            if entry.kind == "prompt"
            else []
        )
    if not attachment_refs.may_hold_reference(entry.edits):
        return []
    return [
        one.digest
        for one in attachment_refs.list_references_in_edits(edits.load_edits(entry.edits))
    ]


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
    if entry.outcome == "expected":
        return view.with_cleared(tuple(entry.reason.split()))
    if entry.outcome != "applied":
        return view
    return edits.apply(view, entry.kind, edits.load_edits(entry.edits))


def views(entries: list[Message | Change]) -> Iterator[tuple[int, View]]:
    """Give the view after each entry, with the entry's number."""
    view = View()
    for entry in entries:
        view = step(view, entry)
        yield entry.seq, view


def state(conversation: Conversation, model: str) -> LoadedConversation:
    """Give what a turn starts from: the view, the last report, and rejected summaries."""
    entries = path(conversation)
    view = View()
    for entry in entries:
        view = step(view, entry)
    last = _last_call(conversation, entries)
    report, called_at = None, 0.0
    if last is not None and last.call.model == model:
        # Another model's is no report, and nothing that it sent is in this model's prompt cache.
        report, called_at = _report(last, entries), last.call.sent_at.timestamp()
    return LoadedConversation(
        view,
        report,
        last.call.binding if last else "",
        _rejected(entries),
        called_at,
        _compacted_by(conversation, entries, view),
    )


def _last_call(conversation: Conversation, entries: list[Message | Change]) -> ApiResult | None:
    """Give the last reply whose answer lies on the path, if need be where it was forked from."""
    answers = (entry for entry in entries if isinstance(entry, Message) and entry.kind == "answer")
    if not (numbers := {entry.seq for entry in answers}):
        return None
    replies = (_last_reply(one, end, numbers) for one, end in _lineage(conversation))
    return next((reply for reply in replies if reply is not None), None)


def _lineage(conversation: Conversation) -> Iterator[tuple[Conversation, int]]:
    """Give a conversation and those it goes on from, each with the last turn that counts."""
    yield conversation, conversation.leaf
    while (origin := conversation.forked_from) is not None:
        conversation = origin.conversation
        yield conversation, origin.number


def _last_reply(conversation: Conversation, end: int, numbers: set[int]) -> ApiResult | None:
    results = (
        ApiResult.objects.filter(
            on_path("call__turn", conversation, end=end),
            call__conversation=conversation,
            call__purpose="reply",
            answer__isnull=False,
        )
        .select_related("call", "answer")
        .defer("answer__content")
        .order_by("-call_id")
    )
    return next(
        (row for row in results[:50] if row.answer is not None and row.answer.seq in numbers), None
    )


def _compacted_by(conversation: Conversation, entries: list[Message | Change], view: View) -> str:
    """Name the model that made the block in view: it stands where its transformation put it."""
    if not api_clearing.has_compaction_block(view):
        return ""
    changes = (entry for entry in reversed(entries) if isinstance(entry, Change))
    put = next((one.seq for one in changes if _puts_block(one)), 0)
    # A copied entry names no call; that of the conversation it was copied from, an older one, does.
    keys = [one.pk for one, _ in _lineage(conversation)]
    rows = Transformation.objects.filter(conversation__in=keys, seq=put, summary_call__isnull=False)
    newest = rows.order_by("-conversation_id")
    return newest.values_list("summary_call__model", flat=True).first() or ""


def _puts_block(change: Change) -> bool:
    is_summary = change.kind == "summary" and change.outcome == "applied"
    return is_summary and api_compaction.inserts_block(edits.load_edits(change.edits))


def _report(result: ApiResult, entries: list[Message | Change]) -> Report | None:
    """Anchor the gauge on a complete answer, as the runner does."""
    if result.input_tokens is None or result.status != "complete" or result.answer is None:
        return None
    seq, call = result.answer.seq, result.call
    messages = (entry for entry in entries if isinstance(entry, Message))
    answer = next(message for message in messages if message.seq == seq)
    usage = read_usage(wire.decode(result.usage))
    context = (
        result.input_tokens
        + (result.cache_read_tokens or 0)
        + (result.cache_write_tokens or 0)
        + (result.output_tokens or 0)
    )
    if usage.parts:
        # What was paid for is the sum of the iterations, the context is that of the last one.
        context = usage.context + usage.output
    # What the API cleared for itself is in the figure all the same.
    context += usage.cleared
    seen = call.view_tokens + answer.tokens
    return anchor_report(Report(context, seen, call.overhead_tokens, call.view_edits), answer)


def _rejected(entries: list[Message | Change]) -> int:
    """Count the summaries refused in a row; what lies far back no longer counts."""
    count = 0
    for entry in reversed(entries[-REMEMBERED:]):
        if isinstance(entry, Change) and entry.kind in ASKS_MODEL:
            if entry.outcome == "applied":
                return count
            # What a person did not want says nothing against the next one.
            count += entry.actor is None
    return count
