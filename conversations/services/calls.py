"""Calls: opened and closed, each in one transaction with the money it moves (law 5)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from conversations.context import wire
from conversations.context.envelope import Envelope as Parameters
from conversations.context.envelope import body
from conversations.context.view import Message as ViewMessage
from conversations.models import ApiCall, ApiResult, Envelope, Message, ToolCall, Turn
from conversations.ports import Ending, Refused, Sending, Sent
from conversations.prices import PriceList, PriceMissing
from conversations.queries.prices import price_list
from conversations.services import budgets
from conversations.services.chain import append, locked
from conversations.services.drafts import drop_draft
from conversations.services.leases import Lease, hold
from conversations.services.log import append_message, keep_blob, storable
from conversations.services.texts import share_texts
from conversations.switch import Stopped
from conversations.usage import Usage

#: An answer is not asked for with less room than this, in tokens.
LEAST_OUTPUT = 1_024
#: What an estimate may be too low by, in percent, where money depends on it.
MARGIN = 25


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
    model = str(dict(sending.envelope.parameters)["model"])
    prices = price_list(model, timezone.now())
    windows = budgets.open_windows(lease.user_id)
    try:
        envelope = _affordable(sending, prices, budgets.room(windows))
        worst = prices.worst(_padded(sending), envelope.max_tokens)
    except PriceMissing as error:
        raise Refused(error.code, str(error)) from error
    text = envelope.text
    sent = body(text, sending.messages)
    call = _record(lease, sending, envelope, text, sent, model)
    if windows:
        budgets.hold_micros(windows=windows, call_id=call.pk, micros=worst)
    is_limited = envelope.max_tokens < sending.envelope.max_tokens
    return Sent(call.pk, sent, is_limited, model, envelope.headers)


def _demand_wanted(lease: Lease) -> None:
    """Go no further when a stop was asked for anywhere, or when the user was shut out."""
    turn = Turn.objects.filter(pk=lease.turn_id)
    stop, is_active = turn.values_list("stop_requested_at", "conversation__owner__is_active").get()
    if stop is not None:
        raise Stopped("user")
    if not is_active:
        raise Refused("inactive", "This account is not active any more.")


def _padded(sending: Sending) -> int:
    return sending.estimated_tokens * (100 + MARGIN) // 100


def _affordable(sending: Sending, prices: PriceList, room: int | None) -> Parameters:
    """Shrink the answer's limit to what the budget still allows, but not below a minimum."""
    envelope = sending.envelope
    if room is None or prices.worst(_padded(sending), envelope.max_tokens) <= room:
        return envelope
    most = prices.affordable_output(_padded(sending), room)
    return envelope.limited(min(envelope.max_tokens, max(LEAST_OUTPUT, most)))


def _record(
    lease: Lease, sending: Sending, envelope: Parameters, text: str, sent: str, model: str
) -> ApiCall:
    digest, headers = envelope.digest, wire.encode(envelope.headers)
    shared = Envelope(digest=digest, text=text, headers=headers)
    share_texts()
    Envelope.objects.bulk_create([shared], ignore_conflicts=True)
    last = ApiCall.objects.filter(turn_id=lease.turn_id).aggregate(last=Max("number"))["last"]
    view = sending.view
    conversation = locked(lease.conversation_id)
    row = ApiCall(
        conversation=conversation,
        turn_id=lease.turn_id,
        number=(last or 0) + 1,
        purpose=sending.purpose,
        model=model,
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
    call = ApiCall.objects.get(pk=call_id)
    if call.purpose == ApiCall.Purpose.REPLY:
        drop_draft(lease.turn_id)
    answer = _store_answer(lease, ending)
    if answer is not None:
        ToolCall.objects.bulk_create(
            ToolCall(
                turn_id=lease.turn_id,
                answer=answer,
                position=position,
                tool_use_id=use.id,
                name=use.name[:128],
                input=use.input,
                effect=effects.get(use.name, "write"),
            )
            for position, use in enumerate(ending.tools)
        )
    paid, basis = _paid(call, ending)
    cost = price_list(call.model, call.sent_at).cost(paid) if paid else 0
    _record_result(call, ending, answer, paid, cost, basis, timing)
    budgets.settle(call_id=call_id, cost_micros=cost)
    return answer


def _store_answer(lease: Lease, ending: Ending) -> Message | None:
    if not ending.blocks:
        return None
    content = wire.join(ending.blocks)
    return append_message(
        conversation_id=lease.conversation_id,
        turn_id=lease.turn_id,
        kind="answer",
        content=content,
        estimate=ViewMessage.parse(0, "answer", content).tokens,
    )


def _paid(call: ApiCall, ending: Ending) -> tuple[Usage | None, str]:
    """Give what is paid for and how it is known: exact, estimated from a cut stream, or none.

    A call of which no event came is free, also one that ran into the deadline for it: the API bills
    what it generates, and had announced nothing. (Where a worker died nobody knows what came, so
    what such a call holds is settled.) Of a cut stream the input is exact from its first event; the
    output is what had come, by the model's tokenizer, and never more than was allowed.
    """
    said = ending.usage
    if said is None:
        return None, "none"
    if ending.stop_reason:
        # The reason comes with the final figures, whatever happens behind it.
        return said, "exact"
    # A compaction says at its end only what it has read.
    read = said.input if said.context else call.estimated_tokens
    came = min(ending.received_tokens, call.max_tokens)
    return said.cut(read, came), "estimated"


def _record_result(
    call: ApiCall,
    ending: Ending,
    answer: Message | None,
    paid: Usage | None,
    cost: int,
    basis: str,
    timing: Timing,
) -> None:
    usage, failure = paid.spent if paid else None, ending.failure
    row = ApiResult(
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
    append(row, locked(call.conversation_id))
