"""`POST /v1/messages` and its token count: validate, look, answer, bill."""

from __future__ import annotations

from agentweb.emulator import accounts, wire
from agentweb.emulator.accounts import Account
from agentweb.emulator.call import Call
from agentweb.emulator.delivery import Delivery, deliver_odd
from agentweb.emulator.diagnosis import diagnose
from agentweb.emulator.exchange import Exchange
from agentweb.emulator.faults.choose import choose_fault
from agentweb.emulator.faults.refusals import refusal
from agentweb.emulator.ids import make_id
from agentweb.emulator.prepare import plan_cache, prepare
from agentweb.emulator.sampling import Sampling
from agentweb.emulator.scenes.background import is_background
from agentweb.emulator.validation.call import validate_call


async def create_message(exchange: Exchange, account: Account, nonce: bytes) -> None:
    emulator = exchange.emulator
    call = _read_call(exchange, account, counting=False)
    prepared = prepare(call, emulator)
    # What is cached and for how long is settled as the request comes in, whatever holds it up.
    plan = plan_cache(prepared.line, call, emulator)
    fault = choose_fault(exchange, prepared.view, background=is_background(prepared.view))
    if fault is not None:
        error = refusal(fault)
        if error is not None:
            raise error
        if await deliver_odd(exchange, fault):
            return
    paid_for = plan.usage.prompt - plan.usage.read
    emulator.buckets(account.organization).admit(
        account.organization_id, paid_for, emulator.clock.now()
    )
    sampled = Sampling(call, prepared, emulator, fault, nonce, plan).run()
    told = diagnose(call, emulator, plan, make_id("msg", nonce))
    delivery = Delivery(exchange, call, prepared, sampled.plan, sampled.outcome, fault, nonce, told)
    await delivery.deliver()


async def count_tokens(exchange: Exchange, account: Account) -> None:
    prepared = prepare(_read_call(exchange, account, counting=True), exchange.emulator)
    body: wire.Object = {"input_tokens": prepared.tokens}
    if prepared.edits is not None:
        body["context_management"] = {"original_input_tokens": prepared.original_tokens}
    await exchange.answer_json(body)


def _read_call(exchange: Exchange, account: Account, *, counting: bool) -> Call:
    betas = accounts.betas(exchange.headers)
    return validate_call(exchange.body, account=account, betas=betas, counting=counting)
