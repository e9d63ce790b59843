"""`POST /v1/messages` and its token count: validate, look, answer, bill."""

from __future__ import annotations

from dataclasses import replace

from agentweb.emulator import accounts, compaction, wire
from agentweb.emulator.accounts import Account
from agentweb.emulator.answer import Answer, Terms, compose
from agentweb.emulator.call import Call
from agentweb.emulator.delivery import Delivery, deliver_odd
from agentweb.emulator.exchange import Exchange
from agentweb.emulator.faults.choose import choose_fault
from agentweb.emulator.faults.fault import Fault
from agentweb.emulator.faults.refusals import refusal
from agentweb.emulator.faults.replies import change_reply
from agentweb.emulator.outcome import Outcome
from agentweb.emulator.prepare import Prepared, plan_cache, prepare
from agentweb.emulator.scenes.background import is_background
from agentweb.emulator.scenes.scene import Reply, say
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.state import Emulator
from agentweb.emulator.usage import Usage
from agentweb.emulator.validation.call import validate_call

_ITERATION_BETAS = frozenset({"compact-2026-01-12", "compact-2026-09-04"})


async def create_message(exchange: Exchange, account: Account, nonce: bytes) -> None:
    emulator = exchange.emulator
    call = _read_call(exchange, account, counting=False)
    prepared = prepare(call, emulator)
    fault = choose_fault(exchange, prepared.view, background=is_background(prepared.view))
    if fault is not None:
        error = refusal(fault)
        if error is not None:
            raise error
        if await deliver_odd(exchange, fault):
            return
    plan = plan_cache(prepared.line, call, emulator)
    paid_for = plan.usage.prompt - plan.usage.read
    emulator.buckets(account.organization).admit(
        account.organization_id, paid_for, emulator.clock.now()
    )
    outcome = _answer(call, prepared, emulator, fault, nonce)
    await Delivery(exchange, call, prepared, plan, outcome, fault, nonce).deliver()


async def count_tokens(exchange: Exchange, account: Account) -> None:
    prepared = prepare(_read_call(exchange, account, counting=True), exchange.emulator)
    body: wire.Object = {"input_tokens": prepared.tokens}
    if prepared.edits is not None:
        body["context_management"] = {"original_input_tokens": prepared.original_tokens}
    await exchange.answer_json(body)


def _read_call(exchange: Exchange, account: Account, *, counting: bool) -> Call:
    betas = accounts.betas(exchange.headers)
    return validate_call(exchange.body, account=account, betas=betas, counting=counting)


def _answer(
    call: Call, prepared: Prepared, emulator: Emulator, fault: Fault | None, nonce: bytes
) -> Outcome:
    """What is sent, and every iteration it took."""
    told = bool(call.betas & _ITERATION_BETAS)
    usage = plan_cache(prepared.line, call, emulator).usage
    if call.body.get("compaction"):
        done = compaction.compact(call, prepared.view, prepared.chain, signed=True)
        spent = replace(usage, output=done.output_tokens)
        return Outcome(done.answer(), Usage(), (spent,), told=True)
    order = compaction.order_in(call)
    if order is None or not compaction.is_due(order, prepared.tokens):
        answer = _speak(call, prepared, prepared.view, emulator, fault, nonce)
        return Outcome(answer, usage, (), told=told)
    return _compact_first(call, prepared, emulator, fault, nonce, order)


def _compact_first(
    call: Call,
    prepared: Prepared,
    emulator: Emulator,
    fault: Fault | None,
    nonce: bytes,
    order: wire.Object,
) -> Outcome:
    done = compaction.compact(call, prepared.view, prepared.chain, signed=False)
    usage = plan_cache(prepared.line, call, emulator).usage
    spent = replace(usage, output=done.output_tokens)
    if done.piece is None or order.get("pause_after_compaction"):
        return Outcome(done.answer(), Usage(), (spent,), told=True)
    view, after = prepared.view, usage
    if done.piece.block["content"] is not None:
        view = compaction.view_after(prepared.view, done.piece)
        body = prepared.body | {"messages": list(view.messages)}
        line = emulator.counter.units(body, call.model.tokenizer)
        after = plan_cache(line, call, emulator).usage
    answer = _speak(call, prepared, view, emulator, fault, nonce)
    answer = replace(answer, pieces=(done.piece, *answer.pieces))
    return Outcome(answer, after, (spent,), told=True)


def _speak(
    call: Call,
    prepared: Prepared,
    view: Request,
    emulator: Emulator,
    fault: Fault | None,
    nonce: bytes,
) -> Answer:
    reply = _ask(emulator, view)
    if fault is not None:
        reply = change_reply(reply, fault)
    return compose(reply, _terms(call, prepared, nonce), prepared.chain)


def _ask(emulator: Emulator, view: Request) -> Reply:
    if not view.max_tokens:
        return Reply((), "max_tokens")
    for scene in emulator.scenes:
        reply = scene(view)
        if reply is not None:
            return reply
    return say("I have nothing to say to that.")


def _terms(call: Call, prepared: Prepared, nonce: bytes) -> Terms:
    return Terms(
        model=call.model,
        account=call.account.organization,
        thinking=call.thinks and prepared.view.max_tokens > 0,
        updates=call.thinking_type == "between_tools",
        display=call.display,
        max_tokens=prepared.view.max_tokens,
        room=max(0, call.model.window - prepared.tokens),
        stop_sequences=tuple(call.body.get("stop_sequences") or ()),
        nonce=nonce,
    )
