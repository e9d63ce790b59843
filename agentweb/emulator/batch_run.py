"""Run message batches: their requests are answered later, at half the price.

A batch is in progress for the emulator's `batch_seconds`. The first request for it after that runs
its requests in order and ends it. A request that breaks a rule becomes one errored result.
"""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.batch import Batch
from agentweb.emulator.call import Call
from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.faults.fault import fault_in
from agentweb.emulator.faults.refusal_faults import refusal
from agentweb.emulator.ids import make_id
from agentweb.emulator.message_metadata import searches
from agentweb.emulator.message_writer import MessageWriter
from agentweb.emulator.prepare_prompt import plan_cache, prepare
from agentweb.emulator.sampling import Sampling
from agentweb.emulator.state import Emulator
from agentweb.emulator.validation.call import validate_call


def advance(batch: Batch, emulator: Emulator) -> None:
    """End the batch if its time has passed; a canceled one processes no more requests."""
    if batch.results or emulator.clock.now() < batch.ends:
        return
    for custom_id, params in batch.requests:
        if batch.canceled is None:
            result = _run(batch, custom_id, params, emulator)
        else:
            result = {"type": "canceled"}
        batch.results.append({"custom_id": custom_id, "result": result})


def _run(
    batch: Batch, custom_id: str, params: json_codec.Object, emulator: Emulator
) -> json_codec.Object:
    nonce = emulator.nonce(batch.id.encode(), custom_id.encode())
    request_id = make_id("req", nonce)
    try:
        message = _answer(_read(batch, params), emulator, nonce, request_id)
    except ApiError as error:
        return {"type": "errored", "error": error.envelope(request_id)}
    return {"type": "succeeded", "message": message}


def _read(batch: Batch, params: json_codec.Object) -> Call:
    if params.get("stream"):
        raise Invalid("stream: streaming is not supported in a batch")
    if params.get("max_tokens") == 0:
        raise Invalid("max_tokens: 0 is not supported in a batch")
    body = json_codec.encode(params)
    return validate_call(
        body,
        account=batch.account,
        betas=batch.betas,
        version=batch.version,
        counting=False,
        is_batched=True,
    )


def _answer(call: Call, emulator: Emulator, nonce: bytes, request_id: str) -> json_codec.Object:
    prepared = prepare(call, emulator)
    plan = plan_cache(prepared.line, call, emulator)
    fault = fault_in(prepared.view.prompt)
    if fault is not None and (error := refusal(fault)) is not None:
        raise error
    sampled = Sampling(call, prepared, emulator, fault, nonce, plan).run()
    outcome = sampled.outcome
    emulator.cache.begin(sampled.plan)
    writer = MessageWriter(call, prepared, outcome, nonce, {}, emulator.clock.now())
    emulator.bill(
        request_id,
        writer.model,
        outcome.billed(outcome.final),
        tariff=call.tariff,
        complete=True,
        searches=searches(outcome.answer),
    )
    return writer.build_message()
