"""Calls: opened and closed, each in one transaction with the money it moves.

This is law 5 in conversations/README.md: a hold and its call are one transaction, a settlement and
its answer are another.
"""

from __future__ import annotations

from django.db import connection

from conversations.agent.bill import write_bill
from conversations.agent.ports import Ending, Sending, Sent
from conversations.agent.stop import Stopped
from conversations.agent.usage import Usage
from conversations.budgets.admission import Admission, admit_call, build_inactive_refusal
from conversations.budgets.cost_centres import find_cost_centre
from conversations.budgets.holds import hold_amounts, settle_holds
from conversations.budgets.prices import load_price_list
from conversations.budgets.units import CallUse
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.envelope import join_body
from conversations.context.view.view import Message as ViewMessage
from conversations.db import transact
from conversations.log.append import append_message
from conversations.log.chain import append_row, lock_conversation
from conversations.log.contents import note_contents
from conversations.log.leases import Lease, hold_lease
from conversations.log.settings_version import reading_settings
from conversations.log.texts import lock_texts_shared, make_storable, store_blob
from conversations.models import ApiCall, ApiResult, Conversation, Message, ToolCall
from conversations.turns.billed_usage import Billed, Timing, bill_ending, bill_lost_call
from conversations.turns.drafts import drop_draft
from conversations.turns.metrics import count_call

#: Raw SQL, because it runs before each call.
_STORE_ENVELOPE = """
INSERT INTO conversations_envelope (digest, text, headers) VALUES (%s, %s, %s)
ON CONFLICT DO NOTHING"""
#: Longest id from the API that is stored beside ours.
_MOST_GIVEN = 1_000


@transact
@reading_settings()
def open_call(*, lease: Lease, sending: Sending) -> Sent:
    """Record a call of a live turn and hold the most it can cost; raises Refused and Stopped."""
    turn = hold_lease(lease)
    conversation = lock_conversation(lease.conversation_id)
    # After the lock: what it notes is what pages show with this step.
    last = note_contents(conversation, turn=turn).calls
    if turn.stop_requested_at is not None:
        raise Stopped("user")
    if not conversation.owner.is_active:
        raise build_inactive_refusal()
    return record_call(conversation=conversation, lease=lease, sending=sending, last=last)


def record_call(
    *, conversation: Conversation, lease: Lease, sending: Sending, last: int | None = None
) -> Sent:
    """Record a call of a locked conversation if the budgets admit it; raises Refused.

    `last` is the number of the turn's last call, if it was read after the lock.
    """
    # Rows are locked in one order everywhere: turn, conversation, windows. Otherwise a side call on
    # an ended turn and the live turn of its conversation could deadlock.
    found = admit_call(lease=lease, sending=sending)
    text = found.envelope.text
    sent = join_body(text, _join_messages(sending, found.envelope.lifetime))
    number = 1 + (_find_last_number(lease.turn_id) if last is None else last)
    call = _insert_call(conversation, lease, sending, found, number, text, sent)
    hold_amounts(slots=found.slots, call=call, size=found.size, conversation=conversation)
    is_limited = found.envelope.max_tokens < sending.envelope.max_tokens
    is_held = bool(found.slots)
    return Sent(
        call.pk, sent, is_limited, is_held, found.model, found.envelope.headers, record=call
    )


def _join_messages(sending: Sending, lifetime: Lifetime) -> str:
    """Return the messages with the cache lifetime that the budgets admitted."""
    if sending.view is None or lifetime == sending.envelope.lifetime:
        return sending.messages
    return sending.view.join(lifetime)


def _insert_call(
    conversation: Conversation,
    lease: Lease,
    sending: Sending,
    found: Admission,
    number: int,
    text: str,
    sent: str,
) -> ApiCall:
    envelope = found.envelope
    digest, headers = envelope.digest, wire.encode(envelope.headers)
    lock_texts_shared()
    with connection.cursor() as cursor:
        cursor.execute(_STORE_ENVELOPE, [digest, text, headers])
    view = sending.view
    row = ApiCall(
        conversation=conversation,
        turn_id=lease.turn_id,
        number=number,
        purpose=sending.purpose,
        model=found.model,
        envelope_id=digest,
        tip=conversation.tip,
        messages_id=None if view is not None else store_blob(sending.messages),
        body_digest=wire.digest(sent),
        body_bytes=len(sent.encode()),
        estimated_tokens=sending.estimated_tokens,
        view_tokens=view.tokens if view is not None else 0,
        view_edits=view.edits if view is not None else 0,
        overhead_tokens=envelope.overhead,
        binding=envelope.binding,
        max_tokens=envelope.max_tokens,
        cost_centre_id=find_cost_centre(conversation),
        # The moment of its windows: so many calls of a minute as its limit allows.
        sent_at=found.at,
    )
    append_row(row, conversation)
    return row


def _find_last_number(turn_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT MAX(number) FROM conversations_apicall WHERE turn_id = %s", [turn_id]
        )
        return int(cursor.fetchone()[0] or 0)


@transact
@reading_settings()
def close_call(
    *,
    lease: Lease,
    call_id: int,
    ending: Ending,
    timing: Timing,
    effects: dict[str, str],
    record: ApiCall | None = None,
) -> Message | None:
    """Settle a call and store its answer with the tool calls that it requests.

    `record` is the row of the call, if the process that opened it has it still.
    """
    hold_lease(lease, **({"state": "tool_wait"} if ending.tools else {}))
    conversation = lock_conversation(lease.conversation_id)
    return store_ending(
        conversation=conversation,
        lease=lease,
        call_id=call_id,
        ending=ending,
        timing=timing,
        effects=effects,
        record=record,
    )


def store_ending(
    *,
    conversation: Conversation,
    lease: Lease,
    call_id: int,
    ending: Ending,
    timing: Timing,
    effects: dict[str, str],
    record: ApiCall | None,
) -> Message | None:
    """Do as `close_call` does for a held lease and its locked conversation."""
    call = record or ApiCall.objects.get(pk=call_id)
    if call.purpose == ApiCall.Purpose.REPLY:
        drop_draft(lease.turn_id)
    answer = _store_answer(conversation, lease, ending)
    if answer is not None and ending.tools:
        ToolCall.objects.bulk_create(
            ToolCall(
                turn_id=lease.turn_id,
                answer=answer,
                position=position,
                tool_use_id=use.id,
                given_id=make_storable(use.given_id[:_MOST_GIVEN]),
                name=use.name[:128],
                input=use.input,
                flaw=make_storable(use.flaw),
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
    """Record the result of a call of the locked conversation and settle its holds."""
    billed = bill_ending(call, ending, timing)
    paid = billed.usage
    cost, bill = _price_usage(call, paid) if paid else (0, "")
    row = _build_result(call, ending, answer, billed, timing)
    row.cost_micros, row.bill = cost, bill
    append_row(row, conversation)
    count_call(call=call, result=row)
    used = CallUse(cost, paid.spent) if paid else None
    settle_holds(call=call, used=used, conversation=conversation)


def lose_call(*, call: ApiCall, conversation: Conversation) -> None:
    """Record a call of the locked conversation as lost: it costs what is known of it, and a bounded
    estimate of the rest.
    """
    paid = bill_lost_call(call)
    cost, bill = _price_usage(call, paid)
    result = ApiResult(
        call=call,
        status="lost",
        cost_micros=cost,
        cost_basis="estimated",
        bill=bill,
        duration_ms=0,
    )
    append_row(result, conversation)
    settle_holds(call=call, used=CallUse(cost, paid.spent), conversation=conversation)
    count_call(call=call, result=result)


def _price_usage(call: ApiCall, usage: Usage) -> tuple[int, str]:
    """Return the cost of a call by the prices of its time, and the bill that says how."""
    prices = load_price_list(call.model, call.sent_at)
    return prices.cost(usage), write_bill(usage, prices)


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
        # The result of its call follows.
        is_last=False,
    )


def _build_result(
    call: ApiCall,
    ending: Ending,
    answer: Message | None,
    billed: Billed,
    timing: Timing,
) -> ApiResult:
    usage, failure = billed.counts, ending.failure
    # By ids, not objects: objects would form a cycle, which only the garbage collector frees.
    return ApiResult(
        call_id=call.pk,
        answer_id=answer.pk if answer is not None else None,
        status=ending.status,
        request_id=make_storable(ending.request_id),
        http_status=failure.http_status if failure else 200,
        error_type=failure.code if failure else "",
        error_message=make_storable(failure.recorded) if failure else "",
        stop_reason=make_storable(ending.stop_reason),
        usage=ending.usage.raw if ending.usage else "{}",
        input_tokens=usage.input if usage else None,
        output_tokens=usage.output if usage else None,
        cache_read_tokens=usage.cache_read if usage else None,
        cache_write_tokens=usage.cache_write if usage else None,
        cost_basis=billed.basis,
        first_event_ms=timing.first_event,
        duration_ms=timing.duration,
    )
