"""The path of a conversation: its entries from the first to a tip, and the view they fold to.

This is the only place where the log is read for the model. What is sent is joined from stored text;
in prompts, references to files (context/view/attachment_refs.py) are replaced by the files' texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from conversations.agent.job import LoadedConversation
from conversations.agent.usage import Usage, read_usage
from conversations.context.policy.gauge import Report, anchor_report
from conversations.context.steps import api_clearing, api_compaction
from conversations.context.steps.kinds import ASKS_MODEL, TransformationKind
from conversations.context.view import attachment_refs, edits, wire
from conversations.context.view.cache_breakpoints import SECONDS
from conversations.context.view.view import Kind, Message, View
from conversations.log.findings import DAMAGE
from conversations.log.named_texts import read_named_texts
from conversations.log.tree import build_path_condition
from conversations.models import ApiResult, Conversation, Transformation
from conversations.models import Message as MessageRow

#: Entries after which a rejected summary may be tried again.
REMEMBERED = 60


@dataclass(frozen=True, slots=True)
class Change:
    """A transformation on the path; one that was not applied has no edits."""

    seq: int
    kind: TransformationKind
    outcome: str
    edits: str
    reason: str = ""
    #: Who did it by hand; None for the engine.
    actor: int | None = None
    #: The figure that triggered it.
    number: int = 0


#: The full log: each entry by its number, with the number of its parent.
Entries = dict[int, tuple[int, Message | Change]]


def read_entries(conversation: Conversation) -> Entries:
    """Return every entry of the log, of all branches."""
    found: Entries = {}
    messages = MessageRow.objects.filter(conversation=conversation).order_by("seq")
    for seq, parent, kind, content, estimate in messages.values_list(
        "seq", "parent", "kind", "content", "estimate"
    ):
        found[seq] = (parent, Message(seq, cast("Kind", kind), content, estimate))
    changes = Transformation.objects.filter(conversation=conversation).order_by("seq")
    for seq, parent, kind, outcome, edited, reason, actor, number in changes.values_list(
        "seq", "parent", "kind", "outcome", "edits", "reason", "actor_id", "number"
    ):
        made = Change(seq, cast("TransformationKind", kind), outcome, edited, reason, actor, number)
        found[seq] = (parent, made)
    return _expand_files(conversation, _link_entries(found))


def _link_entries(found: Entries) -> Entries:
    """Link an entry whose parent is lost to the newest one before it.

    Only a damaged database has such an entry; verification names it, and the conversation goes on.
    """
    lost = {parent for parent, _ in found.values() if parent and parent not in found}
    if not lost:
        return found
    return {
        seq: (_find_before(found, min(seq, parent)) if parent in lost else parent, entry)
        for seq, (parent, entry) in found.items()
    }


def _find_before(found: Entries, number: int) -> int:
    return max((seq for seq in found if seq < number), default=0)


def _expand_files(conversation: Conversation, found: Entries) -> Entries:
    """Replace references to files by the files' texts; a reference to a lost file stays."""
    names = {seq: digests for seq, (_, entry) in found.items() if (digests := _list_digests(entry))}
    texts = read_named_texts(conversation.pk, {name for some in names.values() for name in some})
    for seq in names:
        parent, entry = found[seq]
        if isinstance(entry, Message):
            whole: Message | Change = replace(
                entry, content=attachment_refs.expand_known(entry.content, texts)
            )
        else:
            put = attachment_refs.expand_edits(edits.load_edits(entry.edits), texts)
            whole = replace(entry, edits=edits.dump_edits(put))
        found[seq] = (parent, whole)
    return found


def _list_digests(entry: Message | Change) -> list[str]:
    try:
        return _read_digests(entry)
    except DAMAGE:
        # Text that cannot be read names no file that could be put in.
        return []


def _read_digests(entry: Message | Change) -> list[str]:
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


def read_path(conversation: Conversation, tip: int | None = None) -> list[Message | Change]:
    """Return the entries up to `tip` (by default the conversation's own), first to last."""
    log = read_entries(conversation)
    found: list[Message | Change] = []
    at = conversation.tip if tip is None else tip
    if tip is None and at not in log:
        at = _find_before(log, at)
    while at:
        at, entry = log[at]
        found.append(entry)
    return found[::-1]


def fold_entry(view: View, entry: Message | Change) -> View:
    """Return the view after one more entry.

    A change that cannot be applied to what is stored changes nothing: its rows, or those it names,
    were damaged since. That is found by verification and must not end the conversation.
    """
    if isinstance(entry, Message):
        return view.append(entry)
    if entry.outcome == "expected":
        return view.with_cleared(tuple(entry.reason.split()))
    if entry.outcome != "applied":
        return view
    try:
        return edits.apply(view, entry.kind, edits.load_edits(entry.edits))
    except DAMAGE:
        return view


def fold_views(entries: list[Message | Change]) -> Iterator[tuple[int, View]]:
    """Yield the number of each entry with the view after it."""
    view = View()
    for entry in entries:
        view = fold_entry(view, entry)
        yield entry.seq, view


def load_state(conversation: Conversation, model: str) -> LoadedConversation:
    """Return what a turn starts from: the view, the last report, and the rejected summaries."""
    entries = read_path(conversation)
    view = View()
    for entry in entries:
        view = fold_entry(view, entry)
    answers = {
        entry.seq for entry in entries if isinstance(entry, Message) and entry.kind == "answer"
    }
    replies = _read_last_replies(conversation, answers)
    last = replies[0] if replies else None
    rejections = _list_rejections(entries)
    state = LoadedConversation(
        view,
        report=None,
        bound_to=last.call.binding if last else "",
        rejected=len(rejections),
        rejected_at=rejections[0].number if rejections else 0,
        calls=len(answers),
        pauses=_list_pauses(replies),
        compacted_by=_find_compacting_model(conversation, entries, view),
    )
    if last is None or last.call.model != model:
        # The report of another model does not apply, and its requests are not in this model's
        # cache.
        return state
    usage = read_usage(wire.decode(last.usage))
    return replace(
        state,
        report=_build_report(last, usage, entries),
        called_at=last.call.sent_at.timestamp(),
        # What a call adds is always written, so its figures name the lifetime.
        cache_lifetime=SECONDS["1h" if usage.cache_write_1h else "5m"],
    )


def _read_last_replies(conversation: Conversation, answers: set[int]) -> list[ApiResult]:
    """Return the last replies whose answers are on the path, newest first.

    They are those of the conversation, or where it has none those of the one it was forked from.
    """
    if not answers:
        return []
    found = (_list_replies(one, end, answers) for one, end in _iterate_lineage(conversation))
    return next(filter(None, found), [])


def _list_pauses(replies: list[ApiResult]) -> tuple[int, ...]:
    """Return the seconds between the last turns, from the last call of one to the next turn's."""
    return tuple(
        int((later.call.sent_at - earlier.call.sent_at).total_seconds())
        for later, earlier in pairwise(replies)
        if later.call.turn_id != earlier.call.turn_id
    )


def _iterate_lineage(conversation: Conversation) -> Iterator[tuple[Conversation, int]]:
    """Yield a conversation and those it was forked from, each with the last turn that counts."""
    yield conversation, conversation.leaf
    while (origin := conversation.forked_from) is not None:
        conversation = origin.conversation
        yield conversation, origin.number


def _list_replies(conversation: Conversation, end: int, answers: set[int]) -> list[ApiResult]:
    results = (
        ApiResult.objects.filter(
            build_path_condition("call__turn", conversation, end=end),
            call__conversation=conversation,
            call__purpose="reply",
            answer__isnull=False,
        )
        .select_related("call", "answer")
        .defer("answer__content")
        .order_by("-call_id")
    )
    return [row for row in results[:50] if row.answer is not None and row.answer.seq in answers]


def _find_compacting_model(
    conversation: Conversation, entries: list[Message | Change], view: View
) -> str:
    """Return the model that made the compaction block in view; "" without one."""
    if not api_clearing.has_compaction_block(view):
        return ""
    changes = (entry for entry in reversed(entries) if isinstance(entry, Change))
    put = next((one.seq for one in changes if _puts_block(one)), 0)
    # A copied entry has no call; the entry it was copied from, in an older conversation, has.
    keys = [one.pk for one, _ in _iterate_lineage(conversation)]
    rows = Transformation.objects.filter(conversation__in=keys, seq=put, summary_call__isnull=False)
    newest = rows.order_by("-conversation_id")
    return newest.values_list("summary_call__model", flat=True).first() or ""


def _puts_block(change: Change) -> bool:
    is_summary = change.kind == "summary" and change.outcome == "applied"
    try:
        return is_summary and api_compaction.inserts_block(edits.load_edits(change.edits))
    except DAMAGE:
        return False


def _build_report(
    result: ApiResult, usage: Usage, entries: list[Message | Change]
) -> Report | None:
    """Anchor the gauge on a complete answer, as the runner does."""
    if result.input_tokens is None or result.status != "complete" or result.answer is None:
        return None
    seq, call = result.answer.seq, result.call
    messages = (entry for entry in entries if isinstance(entry, Message))
    answer = next(message for message in messages if message.seq == seq)
    context = (
        result.input_tokens
        + (result.cache_read_tokens or 0)
        + (result.cache_write_tokens or 0)
        + (result.output_tokens or 0)
    )
    if usage.parts or usage.first is not None:
        # Billed is the sum of the rounds or iterations; the context is less.
        context = usage.context + usage.output
    # The figure includes what the API cleared by itself.
    context += usage.cleared
    seen = call.view_tokens + answer.tokens
    report = Report(context, seen, call.overhead_tokens, call.view_edits)
    return anchor_report(report, answer, usage.loop)


def _list_rejections(entries: list[Message | Change]) -> list[Change]:
    """Return the summaries that were rejected in a row, newest first; old ones do not count."""
    found: list[Change] = []
    for entry in reversed(entries[-REMEMBERED:]):
        if isinstance(entry, Change) and entry.kind in ASKS_MODEL:
            if entry.outcome == "applied":
                return found
            # A summary that a person rejected does not count against the next one.
            if entry.actor is None:
                found.append(entry)
    return found
