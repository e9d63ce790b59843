"""Read the figures of the context meter: one statement, two if no recent reply has usage.

What was paid is kept with the conversation, so that a long one costs no more. Raw SQL: it runs with
every state of a turn that a page shows, and the ORM takes ten times as long to compile such
statements as they take to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection
from django.utils import timezone

from conversations.agent.usage import read_start, read_usage
from conversations.context.errors import ContextError
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import SECONDS
from conversations.context.view.server_calls import estimate_results
from conversations.context.view.view import Message
from conversations.log.findings import read_decodable
from conversations.log.tree import ALL_TURNS, add_zone, complete_path_query
from conversations.log.turn_state import MOST_REPLIES
from conversations.models import ApiResult, Conversation

#: The turns of the shown path, last to first, as rows of `way`.
_PATH = """
WITH RECURSIVE way(id, key, number, parent, steps) AS (
  SELECT id, conversation_id, number, parent, 1 FROM conversations_turn
  WHERE conversation_id = %(key)s AND number = %(leaf)s
  UNION ALL
  SELECT turn.id, turn.conversation_id, turn.number, turn.parent, way.steps + 1
  FROM way JOIN {before} turn ON turn.conversation_id = way.key AND turn.number = way.parent
  WHERE way.steps < %(most)s
)"""
#: The last of the subqueries mostly finds nothing. The plus has SQLite look in the calls of the
#: turns of `way`, and not in all of the conversation; the others mostly find the newest call. The
#: patterns are no parameters: SQLite prepares a statement anew each time that one is bound.
_FIGURES = """, last AS (
  SELECT r.input_tokens, r.output_tokens, r.cache_read_tokens, r.cache_write_tokens, r.answer_id,
    r.usage, c.tip, c.view_tokens + c.overhead_tokens AS request, t.number,
    r.status = 'complete' AND c.model = %(model)s AND r.answer_id IS NOT NULL AS counts
  FROM conversations_apiresult r JOIN conversations_apicall c ON c.id = r.call_id
    JOIN conversations_turn t ON t.id = c.turn_id
  WHERE c.conversation_id = %(key)s AND c.purpose = 'reply' AND r.input_tokens IS NOT NULL
    AND c.turn_id {way}
  ORDER BY c.id DESC LIMIT 1
)
SELECT paid.cost, paid.calls, (SELECT COUNT(*) FROM way),
  (SELECT a."window" FROM conversations_apimodel a WHERE a.id = %(model)s),
  (SELECT CAST(a.thresholds AS text) FROM conversations_apimodel a WHERE a.id = %(model)s),
  last.input_tokens, last.output_tokens, last.cache_read_tokens, last.cache_write_tokens,
  last.usage, last.request,
  (SELECT m.content FROM conversations_message m
   WHERE m.id = last.answer_id AND last.usage LIKE '%%"server_tool_use":{{%%'),
  (SELECT SUM(m.estimate) FROM conversations_message m
   WHERE m.turn_id {since} AND m.seq > last.tip
     AND (last.answer_id IS NULL OR m.id <> last.answer_id)),
  (SELECT SUM(x.tokens_before - x.tokens_after) FROM conversations_transformation x
   WHERE x.turn_id {since} AND x.seq > last.tip AND x.outcome = 'applied'),
  last.counts AND NOT EXISTS (SELECT 1 FROM conversations_message m
   WHERE m.turn_id {since} AND m.seq > last.tip AND m.kind = 'answer' AND m.id <> last.answer_id),
  cached.sent_at, cached.usage, kept.sent_at, kept.size
FROM (
  SELECT MAX(k.cost_micros) AS cost, MAX(k.ended_calls) AS calls
  FROM conversations_conversation k WHERE k.id = %(key)s
) paid LEFT JOIN last ON 1 = 1 LEFT JOIN (
  SELECT c.sent_at, r.usage, c.view_edits
  FROM conversations_apicall c JOIN conversations_apiresult r ON r.call_id = c.id
  WHERE c.conversation_id = %(key)s AND c.purpose = 'reply' AND c.model = %(model)s
    AND r.answer_id IS NOT NULL AND c.turn_id {way}
  ORDER BY c.id DESC LIMIT 1
) cached ON 1 = 1 LEFT JOIN (
  SELECT c.sent_at, c.view_edits,
    r.input_tokens + r.cache_read_tokens + r.cache_write_tokens AS size
  FROM conversations_apicall c JOIN conversations_apiresult r ON r.call_id = c.id
  WHERE +c.conversation_id = %(key)s AND c.purpose = 'reply' AND c.model = %(model)s
    AND c.sent_at > %(hour)s AND r.usage LIKE '%%"ephemeral_1h_input_tokens":%%'
    AND r.usage NOT LIKE '%%"ephemeral_1h_input_tokens":0%%'
    AND r.answer_id IS NOT NULL AND c.turn_id {way}
  ORDER BY c.id DESC LIMIT 1
) kept ON kept.view_edits = cached.view_edits
"""
#: The overhead (system prompt and tools) is known as soon as one request was sent.
_ESTIMATE = """
SELECT
  (SELECT SUM(m.estimate) FROM conversations_message m WHERE m.turn_id {way}),
  (SELECT SUM(x.tokens_before - x.tokens_after) FROM conversations_transformation x
   WHERE x.turn_id {way} AND x.outcome = 'applied'),
  (SELECT c.overhead_tokens FROM conversations_apicall c
   WHERE c.conversation_id = %(key)s AND c.purpose = 'reply' ORDER BY c.id DESC LIMIT 1)
"""
#: In usage as it was stored: the API cleared something.
_CLEARED = '"cleared_input_tokens":'
_SINCE = "SELECT id FROM way WHERE number >= last.number"


@dataclass(frozen=True, slots=True)
class ContextFigures:
    """What was paid, the model's window, and the last reply with usage on the shown path.

    `reported` is None if there is no such reply. `context` is the input that reply was billed for;
    `moved` is the change in tokens since its call, without its answer.
    """

    cost_micros: int
    calls: int
    window: int | None
    reported: int | None
    context: int = 0
    cached: int = 0
    moved: int = 0
    #: What transformations have removed since that call; negative where they restored.
    freed: int = 0
    #: Output tokens of that reply.
    written: int = 0
    #: What the API cleared of that reply's request, which its size is without.
    cleared: int = 0
    #: Whether the next call of the present model is measured from that reply, as `turn_state` does:
    #: it is complete, of the same model, and no other answer follows it.
    has_report: bool = False
    #: Whether the size is estimated because the reported input is a sum over rounds.
    is_sum: bool = False
    #: When the model's last reply on the shown path was asked for, and its usage: what is cached.
    cached_at: datetime | None = None
    cached_usage: str = ""
    #: When an hour of cache was last paid for, if within the hour and the messages of that request
    #: are unchanged since, and its size.
    hour_at: datetime | None = None
    hour_tokens: int = 0
    #: The thresholds that are set for the model, as JSON.
    thresholds: str = "{}"


def read_figures(conversation: Conversation) -> ContextFigures:
    """Read the figures of a conversation.

    One of the last MOST_REPLIES turns nearly always has a reply; else the full path is read.
    A transformation that was taken back still counts, but the entry that took it back has the same
    figures with the opposite sign.
    """
    row = _fetch_row(_FIGURES, conversation, MOST_REPLIES)
    if row[5] is None and row[2] >= MOST_REPLIES:
        row = _fetch_row(_FIGURES, conversation, ALL_TURNS)
    cost, calls, _, window, thresholds, *last, cached_at, cached_usage, hour_at, hour_tokens = row
    cached: dict[str, Any] = {
        "cached_at": cached_at and add_zone(cached_at),
        "cached_usage": cached_usage or "",
        "hour_at": hour_at and add_zone(hour_at),
        "hour_tokens": hour_tokens or 0,
        "thresholds": thresholds or "{}",
    }
    if last[0] is None:
        return ContextFigures(cost or 0, calls or 0, window, None, **cached)
    read, written, from_cache, to_cache = (int(value or 0) for value in last[:4])
    usage, request, served, added, freed, counts = last[4:]
    context, gone = read + from_cache + to_cache, int(freed or 0)
    size = _estimate_size(usage, served, request) if served else None
    return ContextFigures(
        cost or 0,
        calls or 0,
        window,
        context + written if size is None else size,
        context,
        from_cache,
        int(added or 0) - gone,
        gone,
        written,
        _read_cleared(usage),
        bool(counts),
        size is not None,
        **cached,
    )


def _estimate_size(usage: str, answer: str, request: int) -> int | None:
    """Estimate the context after an answer in which the API ran tools, as the gauge does."""
    try:
        loop, message = read_usage(wire.decode(usage)).loop, Message.parse(0, "answer", answer)
        if loop is None or not message.shape.server_results:
            return None
        return loop.estimate_size(estimate_results(message), request)
    except ContextError:
        return None


def _read_cleared(usage: str) -> int:
    """Return the tokens that the API cleared of a request; 0 of damaged usage."""
    if _CLEARED not in usage:
        return 0
    try:
        return read_usage(wire.decode(usage)).cleared
    except ContextError:
        return 0


def measure_request(result: ApiResult) -> int:
    """Return the reported size of a call's request; of several rounds, that of the first."""
    start = read_start(result.usage)
    if start is not None:
        return start
    read, written = result.cache_read_tokens or 0, result.cache_write_tokens or 0
    return (result.input_tokens or 0) + read + written


def count_context_tokens(conversation: Conversation) -> int:
    """Return the size of the context: the reported size and the change since, else an estimate."""
    found = read_figures(conversation)
    if found.reported is None:
        return estimate_tokens(conversation)
    return max(0, found.reported + found.moved)


def estimate_tokens(conversation: Conversation) -> int:
    """Estimate the tokens of a conversation without a call."""
    messages, freed, overhead = _fetch_row(_ESTIMATE, conversation, ALL_TURNS)
    return max(0, int(messages or 0) - int(freed or 0)) + (overhead or 0)


def _fetch_row(statement: str, conversation: Conversation, most: int) -> tuple[Any, ...]:
    # PostgreSQL reads an array once; it may run a subquery again for each row.
    among = "= ANY(ARRAY({}))" if connection.vendor == "postgresql" else "IN ({})"
    text = (complete_path_query(_PATH) + statement).format(
        way=among.format("SELECT id FROM way"), since=among.format(_SINCE)
    )
    named: dict[str, Any] = {
        "key": conversation.pk,
        "leaf": conversation.leaf,
        "model": conversation.model,
        "hour": connection.ops.adapt_datetimefield_value(
            timezone.now() - timedelta(seconds=SECONDS["1h"])
        ),
    }
    return read_decodable(partial(_fetch_one, text, named | {"most": most}))


def _fetch_one(statement: str, named: dict[str, Any]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        found: tuple[Any, ...] = cursor.fetchone()
    return found
