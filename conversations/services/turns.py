"""Turns: started by a stored prompt, ended by a final state; a repeated send is the same send."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from conversations.context import wire
from conversations.context.view import Message as ViewMessage
from conversations.models import (
    ALLOWED,
    LIVE,
    ApiCall,
    Conversation,
    Message,
    QueuedPrompt,
    ToolCall,
    Turn,
)
from conversations.ports import Finish
from conversations.services.attachments import first_name
from conversations.services.calls import lose_call
from conversations.services.chain import locked
from conversations.services.drafts import drop_draft, keep_draft
from conversations.services.leases import Lease, hold
from conversations.services.log import append_message, keep_blob, storable
from conversations.services.prompts import (
    Prompt,
    demand_same,
    demand_slot,
    is_busy,
    lock_for,
    lock_owner,
    open_turn,
    prompt_content,
    sent_before,
)
from conversations.services.queue import put_in_queue, queued_before, start_next
from conversations.services.search import index_title

CUT_SHORT = "Outcome unknown: the server stopped while this tool ran. Check before repeating it."
NOT_RUN = "Not run: the server stopped before this tool was started."
_INTERRUPTIBLE = tuple(state for state, after in ALLOWED.items() if "interrupted" in after)


@transaction.atomic
def start_conversation(
    *, owner_id: int, model: str, text: str, client_id: UUID, attachments: Sequence[UUID] = ()
) -> Turn:
    """Start a conversation, named after its first words; a repeated start is the same one."""
    lock_owner(owner_id)
    begun = Turn.objects.filter(conversation__owner_id=owner_id, client_id=client_id).first()
    if begun is not None:
        content = prompt_content(
            conversation=begun.conversation, text=text, attachments=attachments
        )
        demand_same(begun.payload_digest, wire.digest(content))
        return begun
    words = " ".join(storable(text).split())[:80]
    title = words or first_name(owner_id=owner_id, ids=attachments)
    conversation = Conversation.objects.create(owner_id=owner_id, model=model, title=title)
    index_title(conversation=conversation)
    demand_slot(conversation)
    content = prompt_content(conversation=conversation, text=text, attachments=attachments)
    return open_turn(locked(conversation.pk), Prompt(content, client_id))


@transaction.atomic
def send_prompt(
    *, conversation: Conversation, text: str, client_id: UUID, attachments: Sequence[UUID] = ()
) -> Turn | QueuedPrompt:
    """Store a message: as the next turn, or to wait while an answer is on its way.

    The same client id, text and files give the same turn.
    """
    row = lock_for(conversation)
    content = prompt_content(conversation=row, text=text, attachments=attachments)
    prompt = Prompt(content, client_id)
    sent = sent_before(row, prompt) or queued_before(row, prompt)
    if sent is not None:
        return sent
    if is_busy(row):
        return put_in_queue(row, prompt)
    demand_slot(row)
    return open_turn(row, prompt)


@transaction.atomic
def finish_turn(*, lease: Lease, finish: Finish) -> Turn | None:
    """Give the turn its final state, whatever it left open; cancelled goes through cancelling.

    A message that waits for a good end is then the next turn, which is given.
    """
    if finish.state == "cancelled":
        hold(lease, state="cancelling")
    hold(
        lease,
        state=finish.state,
        finish_reason=storable(finish.reason)[:20],
        error_code=finish.code[:40],
        error_text=storable(finish.text),
        retry_at=None,
        ended_at=Now(),
    )
    if finish.state == "done":
        drop_draft(lease.turn_id)
        return start_next(conversation_id=lease.conversation_id)
    _tidy(Turn.objects.get(pk=lease.turn_id))
    return None


@transaction.atomic
def request_stop(*, turn: Turn) -> None:
    """Ask a live turn to stop; one that nobody has started is cancelled at once."""
    Turn.objects.filter(pk=turn.pk, state__in=LIVE, stop_requested_at=None).update(
        stop_requested_at=Now()
    )
    Turn.objects.filter(pk=turn.pk, state="queued").update(
        state="cancelled", finish_reason="stopped", ended_at=Now()
    )


def expired_turns(*, everything: bool = False) -> list[int]:
    """Name the turns whose worker is gone; `everything`: no worker can be left at all."""
    return list(_expired(everything=everything).values_list("pk", flat=True))


def _expired(*, everything: bool) -> QuerySet[Turn]:
    # By the database's clock, as the leases are: those of the processes may differ.
    turns = Turn.objects.filter(state__in=_INTERRUPTIBLE)
    return turns if everything else turns.filter(lease_until__lt=Now())


def queued_turns() -> list[int]:
    """Name the turns that wait for a worker, oldest first."""
    return list(Turn.objects.filter(state="queued").order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def interrupt_turn(*, turn_id: int, everything: bool = False) -> Turn | None:
    """Close a turn whose worker died: keep the draft, answer open tool calls, mark lost calls."""
    # Not its key: who holds the conversation may be writing a row that names this turn.
    rows = _expired(everything=everything).select_for_update(no_key=True)
    turn = rows.filter(pk=turn_id).first()
    if turn is None:
        return None
    turn.lease_generation += 1
    _tidy(turn)
    turn.state, turn.finish_reason, turn.retry_at = "interrupted", "crash", None
    turn.error_code, turn.error_text = "interrupted", "The server stopped during this answer."
    turn.ended_at = timezone.now()
    turn.save()
    return turn


def _tidy(turn: Turn) -> None:
    """Leave a history that can go on: after an error of ours as after a crash."""
    _close_lost_calls(turn)
    keep_draft(turn)
    _answer_open_tools(turn)


def _close_lost_calls(turn: Turn) -> None:
    """Mark calls in doubt; what they held stays spent."""
    for call in ApiCall.objects.filter(turn=turn, result=None):
        lose_call(call=call)


def _answer_open_tools(turn: Turn) -> None:
    """Give the last answer's tool calls their results, so that the history stays valid."""
    last = Message.objects.filter(turn=turn).order_by("-seq").first()
    if last is None:
        return
    results = []
    for call in ToolCall.objects.filter(answer=last).select_related("output"):
        text = NOT_RUN if call.state == "planned" else CUT_SHORT
        is_open = call.state in ("planned", "started")
        output = wire.encode(text) if is_open or call.output is None else call.output.text
        if is_open:
            call.state = "cancelled" if call.state == "planned" else "unknown"
            call.output_id, call.ended_at = keep_blob(output), timezone.now()
            call.save()
        head = wire.encode({"type": "tool_result", "tool_use_id": call.tool_use_id})
        is_error = "" if call.state == "ok" else ',"is_error":true'
        results.append(f'{head[:-1]},"content":{output}{is_error}}}')
    if results:
        content = wire.join(results)
        append_message(
            conversation_id=turn.conversation_id,
            turn_id=turn.pk,
            kind="results",
            content=content,
            estimate=ViewMessage.parse(0, "results", content).tokens,
        )
