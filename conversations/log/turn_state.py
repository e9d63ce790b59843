"""The state at the start of a turn: the view, and what is known of earlier calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import pairwise, takewhile
from typing import NamedTuple

from django.db import connection

from conversations.agent.job import LoadedConversation
from conversations.agent.usage import Usage, read_usage
from conversations.context.policy.cache_lifetime import CachedPrefix
from conversations.context.policy.gauge import Report, anchor_report
from conversations.context.steps import api_clearing
from conversations.context.view import wire
from conversations.context.view.view import Message, View
from conversations.log.contents import read_contents
from conversations.log.findings import read_decodable
from conversations.log.fold_cache import CachedFold, fold_cache
from conversations.log.loaded_path import (
    LoadedPath,
    Summary,
    find_edited,
    load_path,
    load_path_from,
    save_checkpoint_if_due,
)
from conversations.log.tree import ALL_TURNS, add_zone, write_path_query
from conversations.models import Conversation, Decision, Transformation
from conversations.models import Message as MessageRow

#: Of the last replies, how many say what is cached and how long a person pauses.
MOST_REPLIES = 50
#: Raw SQL: the ORM would make three objects of each of fifty rows, for every turn.
_REPLIES = """
SELECT c.sent_at, r.usage, r.status, r.input_tokens, r.output_tokens, r.cache_read_tokens,
  r.cache_write_tokens, c.turn_id, c.model, c.binding, c.view_tokens, c.overhead_tokens,
  c.view_edits, m.id, m.seq, m.estimate
FROM conversations_apiresult r JOIN conversations_apicall c ON c.id = r.call_id
  JOIN conversations_message m ON m.id = r.answer_id
WHERE c.conversation_id = %s AND c.purpose = 'reply' AND c.turn_id {path}
ORDER BY r.call_id DESC LIMIT %s"""

#: Usage, as it was stored, that may say that an hour was paid for.
_HOUR_PAID = re.compile(r'"ephemeral_1h_input_tokens"(?!:0[,}])')


class Reply(NamedTuple):
    """A call for a reply and its result, whose answer is stored."""

    sent_at: datetime
    usage: str
    status: str
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    turn_id: int
    model: str
    binding: str
    view_tokens: int
    overhead_tokens: int
    view_edits: int
    answer_id: int
    #: The number of the answer, and its estimated tokens.
    seq: int
    estimate: int


def load_turn_state(
    conversation: Conversation, model: str
) -> tuple[LoadedConversation, CachedFold | None]:
    """Return the state at the start of a turn, and save a checkpoint if one is due.

    With it what is to be cached for the next turn, once this one has ended.
    """
    cached = fold_cache.take(conversation.public_id)
    path = cached and load_path_from(conversation, cached.start, cached.chain)
    unsaved = cached.unsaved if cached is not None and path is not None else 0
    path = path or load_path(conversation)
    is_saved = save_checkpoint_if_due(conversation, path, unsaved)
    left = 0 if is_saved else unsaved + len(path.entries)
    start = path.continue_from()
    # A turn begins with its prompt; what else the path may end with is rare.
    is_message = bool(path.entries) and isinstance(path.entries[-1], Message)
    following = CachedFold(start, conversation.chain, left) if is_message else None
    return build_state(conversation, path, model), following


def load_state(conversation: Conversation, model: str) -> LoadedConversation:
    """Return the state at the start of a turn of this model."""
    return build_state(conversation, load_path(conversation), model)


def build_state(conversation: Conversation, path: LoadedPath, model: str) -> LoadedConversation:
    """Return the state at the start of a turn at the end of a path."""
    view = path.fold()
    replies = _read_last_replies(conversation, path)
    last = replies[0] if replies else None
    rejections = _list_rejections(path)
    state = LoadedConversation(
        view,
        report=None,
        bound_to=last.binding if last else "",
        rejected=len(rejections),
        rejected_at=rejections[0].tokens if rejections else 0,
        overhead=last.overhead_tokens if last else None,
        calls=path.count_answers(),
        pauses=_list_pauses(replies),
        compacted_by=_find_compacting_model(conversation, path, view),
        decisions=_list_decisions(conversation),
    )
    if last is None or last.model != model:
        # Another model's report does not apply, and its requests are not in this model's cache.
        return state
    usage = read_usage(wire.decode(last.usage))
    return replace(
        state,
        report=_build_report(last, usage, path),
        called_at=last.sent_at.timestamp(),
        cached=_read_cached(replies, model),
        edited_from=_find_edited(conversation, path, view, last),
    )


def _find_edited(
    conversation: Conversation, path: LoadedPath, view: View, last: Reply
) -> int | None:
    """Return the first message that was changed since the last reply; None if none was."""
    return None if view.edits == last.view_edits else find_edited(conversation, path, last.seq)


def _list_decisions(conversation: Conversation) -> tuple[tuple[str, str], ...]:
    """Return the verdicts on tool calls as (id, verdict); one-time permissions are left out."""
    if conversation.forked_from_id is None and not read_contents(conversation).decisions:
        return ()
    rows = Decision.objects.filter(
        conversation__in=[one for one, _ in _iterate_lineage(conversation)]
    )
    rows = rows.exclude(verdict=Decision.Verdict.ONCE).order_by("pk")
    found = rows.values_list("approval__call__tool_use_id", "verdict")
    return read_decodable(lambda: tuple(found))


def _read_last_replies(conversation: Conversation, path: LoadedPath) -> list[Reply]:
    """Return the last replies whose answers are on the path, newest first.

    If the conversation has none, they are those of the one it was forked from.
    """
    if not path.count_answers():
        return []
    for one, end in _iterate_lineage(conversation):
        replies = _list_replies(one, end)
        shown = path.select_answers(reply.seq for reply in replies)
        if shown:
            return [reply for reply in replies if reply.seq in shown]
    return []


def _read_cached(replies: list[Reply], model: str) -> CachedPrefix:
    """Return what the API keeps of the last reply's request, by the last replies of this model."""
    own = [reply for reply in replies if reply.model == model]
    # Every call writes something to the cache, so its figures show the lifetime; before the last
    # payment for an hour nothing counts.
    for at, one in enumerate(own):
        if _HOUR_PAID.search(one.usage):
            usage = read_usage(wire.decode(one.usage))
            if usage.cache_write_1h:
                paid = CachedPrefix().after_call(0.0, "1h", usage.context, is_changed=False)
                return _follow_calls(paid, own[at::-1])
    # Every call replaced what the one before it had left.
    return CachedPrefix()


def _follow_calls(cached: CachedPrefix, replies: list[Reply]) -> CachedPrefix:
    """Return what is kept of the first reply's request after the others, oldest first."""
    for before, one in pairwise(replies):
        passed = (one.sent_at - before.sent_at).total_seconds()
        is_changed = before.view_edits != one.view_edits
        cached = cached.after_call(passed, "5m", 0, is_changed=is_changed)
    return cached


def _list_pauses(replies: list[Reply]) -> tuple[int, ...]:
    """Return the seconds from the last call of each recent turn to the next turn's first call."""
    return tuple(
        int((later.sent_at - earlier.sent_at).total_seconds())
        for later, earlier in pairwise(replies)
        if later.turn_id != earlier.turn_id
    )


def _iterate_lineage(conversation: Conversation) -> Iterator[tuple[Conversation, int]]:
    """Yield a conversation and those it was forked from, each with its last turn on the path."""
    yield conversation, conversation.leaf
    while (origin := conversation.forked_from) is not None:
        conversation = origin.conversation
        yield conversation, origin.number


def _list_replies(conversation: Conversation, end: int) -> list[Reply]:
    """Return the last replies of the last MOST_REPLIES turns, which nearly always have some; where
    none has, of all turns.
    """
    if not conversation.ended_calls:
        # An imported chat: nothing was asked in it.
        return []
    last = _fetch_replies(conversation, end, MOST_REPLIES)
    return last or _fetch_replies(conversation, end, ALL_TURNS)


def _fetch_replies(conversation: Conversation, end: int, most: int) -> list[Reply]:
    path, values = write_path_query(conversation, end, most)
    with connection.cursor() as cursor:
        cursor.execute(_REPLIES.format(path=path), [conversation.pk, *values, MOST_REPLIES])
        return [Reply(add_zone(sent_at), *row) for sent_at, *row in cursor.fetchall()]


def _find_compacting_model(conversation: Conversation, path: LoadedPath, view: View) -> str:
    """Return the model that made the compaction block in view; "" if there is none."""
    if not api_clearing.has_compaction_block(view):
        return ""
    put = path.find_compaction()
    # A copied entry has no call; the original entry, in an older conversation, has.
    keys = [one.pk for one, _ in _iterate_lineage(conversation)]
    rows = Transformation.objects.filter(conversation__in=keys, seq=put, summary_call__isnull=False)
    newest = rows.order_by("-conversation_id")
    return newest.values_list("summary_call__model", flat=True).first() or ""


def _build_report(last: Reply, usage: Usage, path: LoadedPath) -> Report | None:
    """Build the gauge's report of a complete answer, as the runner does."""
    if last.input_tokens is None or last.status != "complete":
        return None
    answer = path.find_message(last.seq)
    if answer is None:
        content = MessageRow.objects.values_list("content", flat=True).get(pk=last.answer_id)
        answer = Message(last.seq, "answer", content, last.estimate)
    context = (
        last.input_tokens
        + (last.cache_read_tokens or 0)
        + (last.cache_write_tokens or 0)
        + (last.output_tokens or 0)
    )
    if usage.parts or usage.first is not None:
        # The billed figure is the sum of the rounds or iterations; the context is smaller.
        context = usage.context + usage.output
    # The figure must include what the API cleared by itself.
    context += usage.cleared
    seen = last.view_tokens + answer.tokens
    report = Report(context, seen, last.overhead_tokens, last.view_edits)
    return anchor_report(report, answer, usage.loop)


def _list_rejections(path: LoadedPath) -> list[Summary]:
    """Return the summaries rejected in a row, newest first; old ones do not count."""
    since = takewhile(lambda one: one.outcome != "applied", path.list_summaries())
    # A summary that a person rejected does not count against the next one.
    return [one for one in since if one.actor is None]
