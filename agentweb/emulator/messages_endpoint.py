"""`POST /v1/messages` and `/v1/messages/count_tokens`: validate, answer, bill."""

from __future__ import annotations

from agentweb.emulator import api_accounts, json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.billed_answer import BilledAnswer
from agentweb.emulator.cache_diagnosis import diagnose
from agentweb.emulator.call import Call
from agentweb.emulator.delivery import Delivery, deliver_odd
from agentweb.emulator.faults.refusal_faults import refusal
from agentweb.emulator.faults.selection import choose_fault
from agentweb.emulator.file_store import StoredFile
from agentweb.emulator.files_endpoint import check_sources
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.ids import make_id
from agentweb.emulator.prepare_prompt import plan_cache, prepare
from agentweb.emulator.sampling import Sampling
from agentweb.emulator.scenes.background import is_background
from agentweb.emulator.scenes.container import made_file
from agentweb.emulator.validation.call import validate_call


async def create_message(exchange: HttpExchange, account: Account, nonce: bytes) -> None:
    emulator = exchange.emulator
    call = _read_call(exchange, account, counting=False)
    prepared = prepare(call, emulator)
    # The cache plan is fixed when the request arrives, whatever delays the request.
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
    _keep_made_files(exchange, account, sampled.outcome)
    diagnostics = diagnose(call, emulator, plan, make_id("msg", nonce))
    delivery = Delivery(
        exchange, call, prepared, sampled.plan, sampled.outcome, fault, nonce, diagnostics
    )
    await delivery.deliver()


async def count_tokens(exchange: HttpExchange, account: Account) -> None:
    prepared = prepare(_read_call(exchange, account, counting=True), exchange.emulator)
    body: json_codec.Object = {"input_tokens": prepared.tokens}
    if prepared.edits is not None:
        body["context_management"] = {"original_input_tokens": prepared.original_tokens}
    await exchange.answer_json(body)


def _read_call(exchange: HttpExchange, account: Account, *, counting: bool) -> Call:
    betas = api_accounts.betas(exchange.headers)
    version = api_accounts.find_version(exchange.headers)
    call = validate_call(
        exchange.body, account=account, betas=betas, version=version, counting=counting
    )
    check_sources(exchange, call.body)
    return call


def _keep_made_files(exchange: HttpExchange, account: Account, outcome: BilledAnswer) -> None:
    """Store the files that code wrote, so that they can be downloaded."""
    emulator = exchange.emulator
    for piece in outcome.answer.pieces:
        made = made_file(str(piece.block.get("input", {}).get("command", "")))
        if piece.block["type"] == "server_tool_use" and made is not None:
            emulator.files.keep(
                StoredFile(
                    id=made.id,
                    account=account,
                    filename=made.name,
                    media_type=made.media_type,
                    content=made.content,
                    created=emulator.clock.now(),
                    is_made=True,
                )
            )
