"""Calls: opened and closed, each in one transaction with the money it moves (law 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Max

from conversations.agent.ports import Ending, Sending, Sent
from conversations.agent.stop import Stopped
from conversations.agent.usage import Usage
from conversations.budgets.admission import admission, inactive, worst_cost
from conversations.budgets.holds import Amounts, hold_amounts, settle, settle_in_full
from conversations.budgets.prices import price_list
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope as Parameters
from conversations.context.view.envelope import count_searches, join_body
from conversations.context.view.view import Message as ViewMessage
from conversations.log.append import append_message
from conversations.log.chain import append, locked
from conversations.log.leases import Lease, hold
from conversations.log.texts import keep_blob, share_texts, storable
from conversations.models import ApiCall, ApiResult, Conversation, Envelope, Message, ToolCall, Turn
from conversations.turns.drafts import drop_draft
from conversations.turns.metrics import count_call


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds until the first event (None: there was none) and to the end."""

    first_event: int | None
    duration: int


@transaction.atomic
def open_call(*, lease: Lease, sending: Sending) -> Sent:
    """Record a call and hold the most it can cost; raises Refused."""
    hold(lease)
    _demand_wanted(lease)
    return admit(lease=lease, sending=sending)


def admit(*, lease: Lease, sending: Sending) -> Sent:
    """Record a call that may be made, if the budget allows it; raises Refused."""
    # Locked in one order everywhere: turn, conversation, windows. Else a call on a turn that is
    # over and the running turn of its conversation could wait for each other.
    conversation = locked(lease.conversation_id)
    found = admission(lease=lease, sending=sending)
    text = found.envelope.text
    sent = join_body(text, sending.messages)
    call = _record(conversation, lease, sending, found.envelope, text, sent)
    hold_amounts(slots=found.slots, call=call, worst=found.worst, conversation=conversation)
    is_limited = found.envelope.max_tokens < sending.envelope.max_tokens
    return Sent(call.pk, sent, is_limited, found.model, found.envelope.headers)


def _demand_wanted(lease: Lease) -> None:
    """Go no further when a stop was asked for anywhere, or when the user was shut out."""
    turn = Turn.objects.filter(pk=lease.turn_id)
    stop, is_active = turn.values_list("stop_requested_at", "conversation__owner__is_active").get()
    if stop is not None:
        raise Stopped("user")
    if not is_active:
        raise inactive()


def _record(
    conversation: Conversation,
    lease: Lease,
    sending: Sending,
    envelope: Parameters,
    text: str,
    sent: str,
) -> ApiCall:
    digest, headers = envelope.digest, wire.encode(envelope.headers)
    shared = Envelope(digest=digest, text=text, headers=headers)
    share_texts()
    Envelope.objects.bulk_create([shared], ignore_conflicts=True)
    last = ApiCall.objects.filter(turn_id=lease.turn_id).aggregate(last=Max("number"))["last"]
    view = sending.view
    row = ApiCall(
        conversation=conversation,
        turn_id=lease.turn_id,
        number=(last or 0) + 1,
        purpose=sending.purpose,
        model=str(dict(envelope.parameters)["model"]),
        envelope_id=digest,
        tip=conversation.tip,
        messages_id=None if view is not None else keep_blob(sending.messages),
        body_digest=wire.digest(sent),
        body_bytes=len(sent.encode()),
        estimated_tokens=sending.estimated_tokens,
        view_tokens=view.tokens if view is not None else 0,
        view_edits=view.edits if view is not None else 0,
        overhead_tokens=envelope.overhead,
        binding=envelope.binding,
        max_tokens=envelope.max_tokens,
    )
    append(row, conversation)
    return row


@transaction.atomic
def close_call(
    *, lease: Lease, call_id: int, ending: Ending, timing: Timing, effects: dict[str, str]
) -> Message | None:
    """Settle a call and store what is kept of its answer, with the tool calls it plans."""
    hold(lease, **({"state": "tool_wait"} if ending.tools else {}))
    conversation = locked(lease.conversation_id)
    call = ApiCall.objects.get(pk=call_id)
    if call.purpose == ApiCall.Purpose.REPLY:
        drop_draft(lease.turn_id)
    answer = _store_answer(conversation, lease, ending)
    if answer is not None:
        ToolCall.objects.bulk_create(
            ToolCall(
                turn_id=lease.turn_id,
                answer=answer,
                position=position,
                tool_use_id=use.id,
                name=use.name[:128],
                input=use.input,
                flaw=storable(use.flaw),
                effect=effects.get(use.name, "write"),
            )
            for position, use in enumerate(ending.tools)
        )
    settle_call(call=call, conversation=conversation, ending=ending, answer=answer, timing=timing)
    return answer


def settle_call(
    *,
    call: ApiCall,
    conversation: Conversation,
    ending: Ending,
    answer: Message | None,
    timing: Timing,
) -> None:
    """Record how a call of the locked conversation ended and what it cost; its answer is stored."""
    paid, basis = known_usage(call, ending)
    is_clamped = ending.usage is not None and ending.usage.is_clamped
    if paid is not None and paid.searches > (most := searches_offered(call, paid)):
        # More than were offered cannot have been made.
        paid, is_clamped = replace(paid, searches=most), True
    counts = paid
    if ending.status == "complete" and (paid is None or not paid.spent.total):
        # An answer without figures is not free; its counts stay unknown.
        came = min(ending.received_tokens, call.max_tokens)
        paid, basis, counts = Usage(call.estimated_tokens, came, 0, 0, 0), "estimated", None
    if is_clamped:
        basis = "clamped"
    cost = price_list(call.model, call.sent_at).cost(paid) if paid else 0
    row = _result(call, ending, answer, counts, cost, basis, timing)
    append(row, conversation)
    count_call(call=call, result=row)
    used = Amounts(cost, paid.spent.total) if paid else None
    settle(call=call, used=used, conversation=conversation)


def lose_call(*, call: ApiCall, conversation: Conversation) -> None:
    """Mark a call of the locked conversation, in doubt, as lost; what it held stays spent."""
    held = call.reservations.filter(window__budget__unit="money").values_list("amount", flat=True)
    cost = held.first()
    result = ApiResult(
        call=call,
        status="lost",
        cost_micros=worst_cost(call) if cost is None else cost,
        cost_basis="estimated",
        duration_ms=0,
    )
    append(result, conversation)
    settle_in_full(call=call, conversation=conversation)
    count_call(call=call, result=result)


def _store_answer(conversation: Conversation, lease: Lease, ending: Ending) -> Message | None:
    if not ending.blocks:
        return None
    content = wire.join(ending.blocks)
    return append_message(
        conversation=conversation,
        turn_id=lease.turn_id,
        kind="answer",
        content=content,
        estimate=ViewMessage.parse(0, "answer", content).tokens,
    )


def _result(
    call: ApiCall,
    ending: Ending,
    answer: Message | None,
    paid: Usage | None,
    cost: int,
    basis: str,
    timing: Timing,
) -> ApiResult:
    usage, failure = paid.spent if paid else None, ending.failure
    return ApiResult(
        call=call,
        answer=answer,
        status=ending.status,
        request_id=storable(ending.request_id),
        http_status=failure.http_status if failure else 200,
        error_type=failure.code if failure else "",
        error_message=storable(failure.text) if failure else "",
        stop_reason=storable(ending.stop_reason),
        usage=ending.usage.raw if ending.usage else "{}",
        input_tokens=usage.input if usage else None,
        output_tokens=usage.output if usage else None,
        cache_read_tokens=usage.cache_read if usage else None,
        cache_write_tokens=usage.cache_write if usage else None,
        cost_micros=cost,
        cost_basis=basis,
        first_event_ms=timing.first_event,
        duration_ms=timing.duration,
    )


def known_usage(call: ApiCall, ending: Ending) -> tuple[Usage | None, str]:
    """Give what is paid for and how it is known: exact, estimated from a cut stream, or none.

    A call of which no event came is free, also one that ran into the deadline for it: the API bills
    what it generates, and had announced nothing. (Where a worker died nobody knows what came, so
    what such a call holds is settled.) Of a cut stream the input is exact from its first event; the
    output is what had come, by the model's tokenizer, and never more than was allowed.
    """
    said = ending.usage
    if said is None:
        return None, "none"
    if ending.stop_reason and said.is_final:
        # The reason comes with the final figures, whatever happens behind it.
        return said, "exact"
    # A compaction says at its end only what it has read.
    read = said.input if said.context else call.estimated_tokens
    came = min(ending.received_tokens, call.max_tokens)
    return said.cut(read, came, ending.received_searches), "estimated"


def searches_offered(call: ApiCall, paid: Usage) -> int:
    """Give how many searches of the web a call offered; it is looked up where any were made."""
    if not paid.searches:
        return 0
    return count_searches(wire.decode(call.envelope.text))
