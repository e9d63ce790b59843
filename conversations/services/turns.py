"""Turns: started by a stored prompt, ended by a final state; a repeated send is the same send."""

from __future__ import annotations

from uuid import UUID, uuid5

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils import timezone

from conversations.conf import conf
from conversations.context import wire
from conversations.context.view import Message as ViewMessage
from conversations.models import (
    LIVE,
    ApiCall,
    ApiResult,
    Conversation,
    Draft,
    Message,
    ToolCall,
    Turn,
)
from conversations.ports import Finish
from conversations.services.budgets import settle
from conversations.services.chain import append, locked
from conversations.services.leases import Lease, hold
from conversations.services.log import append_message, keep_blob

CUT_SHORT = "Outcome unknown: the server stopped while this tool ran. Check before repeating it."
NOT_RUN = "Not run: the server stopped before this tool was started."


class SendError(Exception):
    """A prompt was not taken; the text is for the person who sent it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@transaction.atomic
def start_conversation(*, owner_id: int, model: str, text: str, client_id: UUID) -> Turn:
    """Start a conversation, named after its first words, with its first turn."""
    title = " ".join(wire.clean(text).replace("\0", "").split())[:80]
    conversation = Conversation.objects.create(owner_id=owner_id, model=model, title=title)
    return send_prompt(conversation=conversation, text=text, client_id=client_id)


def send_prompt(*, conversation: Conversation, text: str, client_id: UUID) -> Turn:
    """Store the prompt and queue its turn; the same client id and text gives the same turn."""
    text = wire.clean(text.replace("\r\n", "\n"))
    if not text.strip():
        raise SendError("empty", "Write a message first.")
    if len(text) > conf.max_prompt_chars:
        raise SendError(
            "too_long",
            f"The message has {len(text):,} characters; at most {conf.max_prompt_chars:,} fit."
            " It is still in the box: shorten it, or save it as a file for the agent to read.",
        )
    content = wire.encode([{"type": "text", "text": text}])
    return queue_turn(conversation=conversation, content=content, client_id=client_id)


def queue_turn(
    *, conversation: Conversation, content: str, client_id: UUID, retry_of: Turn | None = None
) -> Turn:
    """Append the prompt with its turn in one transaction."""
    digest = wire.digest(content)
    sent = Turn.objects.filter(conversation=conversation, client_id=client_id).first()
    if sent is not None:
        if sent.payload_digest != digest:
            raise SendError("reused_id", "This message id was used for another message.")
        return sent
    try:
        return _queue(conversation, content, client_id, digest, retry_of)
    except IntegrityError as error:
        raise SendError("busy", "An answer is on its way; send when it is done.") from error


def retry_turn(*, turn: Turn) -> Turn:
    """Send the prompt of an ended turn once more; asked twice, it is the same retry."""
    prompt = turn.messages.filter(kind="prompt").first()
    if turn.is_live or prompt is None:
        raise SendError("busy", "An answer is on its way; send when it is done.")
    client_id = uuid5(turn.public_id, "retry")
    return queue_turn(
        conversation=turn.conversation,
        content=prompt.content,
        client_id=client_id,
        retry_of=turn,
    )


@transaction.atomic
def _queue(
    conversation: Conversation, content: str, client_id: UUID, digest: str, retry_of: Turn | None
) -> Turn:
    Conversation.objects.select_for_update().only("pk").get(pk=conversation.pk)
    live = Turn.objects.filter(conversation__owner_id=conversation.owner_id, state__in=LIVE)
    if live.count() >= conf.max_live_turns:
        raise SendError("too_many", "Too many answers are on their way; wait for one to finish.")
    last = conversation.turns.aggregate(last=Max("number"))["last"]
    turn = Turn.objects.create(
        conversation=conversation,
        number=(last or 0) + 1,
        client_id=client_id,
        payload_digest=digest,
        retry_of=retry_of,
    )
    append_message(
        conversation_id=conversation.pk,
        turn_id=turn.pk,
        kind="prompt",
        content=content,
        estimate=ViewMessage.parse(0, "prompt", content).tokens,
    )
    return turn


@transaction.atomic
def finish_turn(*, lease: Lease, finish: Finish) -> None:
    """Give the turn its final state; a cancelled one passes through cancelling."""
    if finish.state == "cancelled":
        hold(lease, state="cancelling")
    hold(
        lease,
        state=finish.state,
        finish_reason=finish.reason[:20],
        error_code=finish.code[:40],
        error_text=finish.text,
        retry_at=None,
        ended_at=Now(),
    )
    Draft.objects.filter(turn_id=lease.turn_id).delete()


@transaction.atomic
def request_stop(*, turn: Turn) -> None:
    """Ask a live turn to stop; one that nobody has started is cancelled at once."""
    Turn.objects.filter(pk=turn.pk, state__in=LIVE, stop_requested_at=None).update(
        stop_requested_at=Now()
    )
    Turn.objects.filter(pk=turn.pk, state="queued").update(
        state="cancelled", finish_reason="stopped", ended_at=Now()
    )


@transaction.atomic
def save_draft(*, lease: Lease, text: str, thinking: str) -> None:
    """Keep what was shown of an answer on its way."""
    hold(lease)
    Draft.objects.update_or_create(
        turn_id=lease.turn_id,
        defaults={"text": text, "thinking": thinking, "updated_at": timezone.now()},
    )


def expired_turns(*, everything: bool = False) -> list[int]:
    """Name the turns whose worker is gone; `everything`: no worker can be left at all."""
    turns = Turn.objects.filter(state__in=LIVE).exclude(state__in=("queued", "approval_wait"))
    return list(
        (turns if everything else turns.filter(lease_until__lt=Now())).values_list("pk", flat=True)
    )


def queued_turns() -> list[int]:
    """Name the turns that wait for a worker, oldest first."""
    return list(Turn.objects.filter(state="queued").order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def interrupt_turn(*, turn_id: int, everything: bool = False) -> bool:
    """Close a turn whose worker died: keep the draft, answer open tool calls, mark lost calls."""
    turn = Turn.objects.select_for_update().get(pk=turn_id)
    is_stale = everything or (turn.lease_until is not None and turn.lease_until < timezone.now())
    if turn.state not in LIVE or turn.state == "queued" or not is_stale:
        return False
    turn.lease_generation += 1
    _close_lost_calls(turn)
    _keep_draft(turn)
    _answer_open_tools(turn)
    turn.state, turn.finish_reason = "interrupted", "crash"
    turn.error_code, turn.error_text = "interrupted", "The server stopped during this answer."
    turn.ended_at = timezone.now()
    turn.save()
    return True


def _close_lost_calls(turn: Turn) -> None:
    """Mark calls in doubt; what they held stays spent."""
    for call in ApiCall.objects.filter(turn=turn, result=None):
        held = call.reservations.values_list("micros", flat=True).first() or 0
        result = ApiResult(
            call=call, status="lost", cost_micros=held, cost_basis="estimated", duration_ms=0
        )
        append(result, locked(turn.conversation_id))
        settle(call_id=call.pk, cost_micros=held)


def _keep_draft(turn: Turn) -> None:
    draft = Draft.objects.filter(turn=turn).first()
    if draft is not None and draft.text.strip():
        content = wire.encode([{"type": "text", "text": wire.clean(draft.text)}])
        append_message(
            conversation_id=turn.conversation_id,
            turn_id=turn.pk,
            kind="answer",
            content=content,
            estimate=ViewMessage.parse(0, "answer", content).tokens,
        )
        draft.delete()


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
