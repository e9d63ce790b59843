"""Turns: started by a stored prompt, ended by a final state; a repeated send is the same send."""

from __future__ import annotations

from uuid import UUID, uuid5

from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from conversations.conf import conf
from conversations.context import wire
from conversations.context.view import Message as ViewMessage
from conversations.models import (
    ALLOWED,
    LIVE,
    ApiCall,
    ApiResult,
    Conversation,
    Message,
    ToolCall,
    Turn,
    User,
)
from conversations.ports import Finish
from conversations.services.budgets import settle
from conversations.services.chain import append, locked
from conversations.services.drafts import drop_draft, keep_draft
from conversations.services.leases import Lease, hold
from conversations.services.log import append_message, keep_blob, storable
from conversations.services.search import index_title

CUT_SHORT = "Outcome unknown: the server stopped while this tool ran. Check before repeating it."
NOT_RUN = "Not run: the server stopped before this tool was started."
_INTERRUPTIBLE = tuple(state for state, after in ALLOWED.items() if "interrupted" in after)


class SendError(Exception):
    """A prompt was not taken; the text is for the person who sent it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@transaction.atomic
def start_conversation(*, owner_id: int, model: str, text: str, client_id: UUID) -> Turn:
    """Start a conversation, named after its first words; a repeated start is the same one."""
    content = _content(text)
    _lock_owner(owner_id)
    begun = Turn.objects.filter(conversation__owner_id=owner_id, client_id=client_id).first()
    if begun is not None:
        return _same(begun, wire.digest(content))
    title = " ".join(storable(text).split())[:80]
    conversation = Conversation.objects.create(owner_id=owner_id, model=model, title=title)
    index_title(conversation=conversation)
    return queue_turn(conversation=conversation, content=content, client_id=client_id)


def send_prompt(*, conversation: Conversation, text: str, client_id: UUID) -> Turn:
    """Store the prompt and queue its turn; the same client id and text gives the same turn."""
    return queue_turn(conversation=conversation, content=_content(text), client_id=client_id)


def _content(text: str) -> str:
    text = wire.clean(text.replace("\r\n", "\n"))
    if not text.strip():
        raise SendError("empty", "Write a message first.")
    if len(text) > conf.max_prompt_chars:
        raise SendError(
            "too_long",
            f"The message has {len(text):,} characters; at most {conf.max_prompt_chars:,} fit."
            " It is still in the box: shorten it, or save it as a file for the agent to read.",
        )
    return wire.encode([{"type": "text", "text": text}])


def _same(sent: Turn, digest: str) -> Turn:
    if sent.payload_digest != digest:
        raise SendError("reused_id", "This message id was used for another message.")
    return sent


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
def queue_turn(
    *, conversation: Conversation, content: str, client_id: UUID, retry_of: Turn | None = None
) -> Turn:
    """Append the prompt with its turn, unless the same was sent before or another is live."""
    # Everything is judged under these locks: parallel sends of one id are one turn, and no insert
    # ever waits at the index of live turns for a worker that in turn waits for the conversation.
    _lock_owner(conversation.owner_id)
    row = locked(conversation.pk)
    if row.deleted_at is not None:
        raise SendError("deleted", "This conversation is in the trash; bring it back first.")
    digest = wire.digest(content)
    sent = Turn.objects.filter(conversation=conversation, client_id=client_id).first()
    if sent is not None:
        return _same(sent, digest)
    live = Turn.objects.filter(conversation__owner_id=conversation.owner_id, state__in=LIVE)
    places = list(live.values_list("conversation_id", flat=True))
    if conversation.pk in places:
        raise SendError("busy", "An answer is on its way; send when it is done.")
    if len(places) >= conf.max_live_turns:
        raise SendError("too_many", "Too many answers are on their way; wait for one to finish.")
    last = conversation.turns.aggregate(last=Max("number"))["last"]
    turn = Turn.objects.create(
        conversation=conversation,
        number=(last or 0) + 1,
        parent=row.leaf,
        client_id=client_id,
        payload_digest=digest,
        retry_of=retry_of,
    )
    Conversation.objects.filter(pk=row.pk).update(leaf=turn.number)
    append_message(
        conversation_id=conversation.pk,
        turn_id=turn.pk,
        kind="prompt",
        content=content,
        estimate=ViewMessage.parse(0, "prompt", content).tokens,
    )
    return turn


def _lock_owner(user_id: int) -> None:
    """Let one send of a user through at a time, so that the cap on live turns holds."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user_id)


@transaction.atomic
def finish_turn(*, lease: Lease, finish: Finish) -> None:
    """Give the turn its final state, whatever it left open; cancelled goes through cancelling."""
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
    else:
        _tidy(Turn.objects.get(pk=lease.turn_id))


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
    turn = _expired(everything=everything).select_for_update().filter(pk=turn_id).first()
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
        held = call.reservations.values_list("micros", flat=True).first() or 0
        result = ApiResult(
            call=call, status="lost", cost_micros=held, cost_basis="estimated", duration_ms=0
        )
        append(result, locked(turn.conversation_id))
        settle(call_id=call.pk, cost_micros=held)


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
