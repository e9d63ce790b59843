"""Takeovers: turns whose worker died are resumed if that repeats nothing, else ended.

After an answer with tool calls everything a turn has done is stored, so another worker resumes it
there, and calls the API again if a call was open but none of its answer was shown. A turn whose
worker died while it showed an answer ends as interrupted with what was shown, and the person
decides whether to ask again; so does a turn without any answer yet. A turn whose workers keep dying
is given up.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from conversations.agent.finish import INTERRUPTED, POISON
from conversations.agent.ports import ToolDone
from conversations.agent.tool_calls import CUT_SHORT, write_result
from conversations.context.view import wire
from conversations.context.view.view import Message as ViewMessage
from conversations.db import transact
from conversations.log.append import append_message
from conversations.log.chain import lock_conversation
from conversations.log.findings import read_decodable
from conversations.log.leases import RELEASED, release_turn
from conversations.log.page_version import raise_version
from conversations.log.texts import store_blob
from conversations.models import ALLOWED, IS_LIVE, ApiCall, Draft, Message, ToolCall, Turn
from conversations.turns.calls import lose_call
from conversations.turns.drafts import drop_draft, find_open_draft, store_draft_as_answer
from conversations.turns.metrics import count_takeover, count_turn
from conversations.turns.resume import build_done

_INTERRUPTIBLE = tuple(state for state, after in ALLOWED.items() if "interrupted" in after)
#: Takeovers of one turn before it is given up.
MOST_TAKEOVERS = 3
NOT_RUN = "Not run: the turn ended before this tool was started."


def list_expired_turns(*, everything: bool = False) -> list[int]:
    """Return the turns whose lease has expired; with `everything`, all with a worker."""
    return list(filter_expired_turns(everything=everything).values_list("pk", flat=True))


def filter_expired_turns(*, everything: bool = False) -> QuerySet[Turn]:
    """Return the turns of `list_expired_turns`."""
    # By the database's clock, like the leases: the clocks of processes may differ.
    turns = Turn.objects.filter(IS_LIVE, state__in=_INTERRUPTIBLE).exclude(lease_until=None)
    return turns if everything else turns.filter(lease_until__lt=Now())


def list_claimable_turns() -> list[int]:
    """Return the turns that wait for a worker, oldest first."""
    # Sorted here: to have them in order SQLite would read all turns by their keys.
    return sorted(filter_claimable_turns().values_list("pk", flat=True))


def filter_claimable_turns() -> QuerySet[Turn]:
    """Return the turns of `list_claimable_turns`."""
    return Turn.objects.filter(IS_LIVE, Q(state="queued") | RELEASED)


@transact
def take_over_turn(*, turn_id: int, everything: bool = False) -> Turn | None:
    """Take a turn from a dead worker and release or end it; None if its worker lives."""
    # Without a key lock: whoever has locked the conversation may be inserting a row that references
    # the turn.
    rows = filter_expired_turns(everything=everything).select_for_update(no_key=True)
    turn = rows.filter(pk=turn_id).first()
    if turn is None:
        return None
    turn.takeovers += 1
    if not _can_go_on(turn):
        _end_turn(turn, "interrupted", "crash", "interrupted", INTERRUPTED)
    elif turn.takeovers > MOST_TAKEOVERS:
        _end_turn(turn, "failed", "poison", "poison", POISON)
    else:
        close_lost_calls(turn)
        drop_draft(turn.pk)
        state = "running" if turn.state == "backoff" else turn.state
        release_turn(turn, state=state, retry_at=None, waits_for="")
    count_takeover(state=turn.state)
    return turn


def _can_go_on(turn: Turn) -> bool:
    """Return whether the last entries are tool calls or results, and nothing later was shown."""
    calls = ApiCall.objects.filter(turn=turn, result=None)
    if turn.state == "cancelling" or Draft.objects.filter(call__in=calls).exists():
        return False
    last = _find_last_message(turn)
    if last is None:
        return False
    return last.kind == "results" or ToolCall.objects.filter(answer=last).exists()


def _end_turn(turn: Turn, state: str, reason: str, code: str, text: str) -> None:
    """End the turn: store its draft, answer its open tool calls, close its lost calls."""
    turn.lease_generation += 1
    close_open_work(turn)
    turn.state, turn.finish_reason, turn.retry_at, turn.waits_for = state, reason, None, ""
    turn.error_code, turn.error_text = code, text
    turn.ended_at = timezone.now()
    turn.save()
    raise_version(turn.conversation_id)
    count_turn(state=state, reason=reason)


def close_open_work(turn: Turn) -> None:
    """After an error or crash, close what a turn left open, so that its history stays valid."""
    draft = find_open_draft(turn)
    close_lost_calls(turn)
    store_draft_as_answer(turn, draft)
    _answer_open_tools(turn)


def close_lost_calls(turn: Turn) -> None:
    """Close calls without a result as lost, each with an estimate of its cost."""
    for call in ApiCall.objects.filter(turn=turn, result=None):
        lose_call(call=call, conversation=lock_conversation(turn.conversation_id))


def _answer_open_tools(turn: Turn) -> None:
    """Store a result for each tool call of the last answer, so that the history stays valid."""
    last = _find_last_message(turn)
    if last is None:
        return
    calls = ToolCall.objects.filter(answer=last).select_related("output")
    ended = [
        (call.tool_use_id, build_done(call) or _close_call(call))
        for call in read_decodable(lambda: list(calls))
    ]
    # Where an id is damaged there is no result, which the next request is repaired for.
    results = [write_result(key, done) for key, done in ended if key]
    if results:
        content = wire.join(results)
        append_message(
            conversation=lock_conversation(turn.conversation_id),
            turn_id=turn.pk,
            kind="results",
            content=content,
            estimate=ViewMessage.parse(0, "results", content).tokens,
        )


def _find_last_message(turn: Turn) -> Message | None:
    """Return the last message of a turn, without its content, which may be damaged."""
    return Message.objects.filter(turn=turn).order_by("-seq").only("kind").first()


def _close_call(call: ToolCall) -> ToolDone:
    """Close a call that has not ended."""
    if call.state == "planned":
        done = ToolDone(wire.encode(NOT_RUN), "cancelled")
    else:
        done = ToolDone(wire.encode(CUT_SHORT), "unknown")
    # Its other fields may be damaged, and are not what is stored.
    ToolCall.objects.filter(pk=call.pk).update(
        state=done.state, output=store_blob(done.content), ended_at=timezone.now()
    )
    return done
