"""Validate a body: return the call, or raise the error the API would give, in its order.

JSON, shape, model, parameters, tools, messages, pairs, cache marks; thinking signatures and the
window come after, because they need the chain and the count.
"""

from __future__ import annotations

from functools import lru_cache

from agentweb.emulator import json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.call import Call
from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.model_catalogue import find_model
from agentweb.emulator.validation.cache_breakpoints import check_cache_marks
from agentweb.emulator.validation.compaction import ON_DEMAND_BETA, check_compaction, check_finished
from agentweb.emulator.validation.document_citations import check_document_citations
from agentweb.emulator.validation.extended_thinking import (
    check_final_thinking,
    check_thinking_start,
)
from agentweb.emulator.validation.grammar import check_grammar
from agentweb.emulator.validation.mcp_servers import check_mcp_servers
from agentweb.emulator.validation.media import check_media
from agentweb.emulator.validation.messages import check_end, check_messages
from agentweb.emulator.validation.params import (
    check_effort,
    check_max_tokens,
    check_place_and_speed,
    check_sampling,
    check_stop_sequences,
    check_thinking,
)
from agentweb.emulator.validation.schema import Check, Misfit
from agentweb.emulator.validation.shape import request_shape
from agentweb.emulator.validation.system_messages import check_system_messages
from agentweb.emulator.validation.tool_pairing import check_pairs
from agentweb.emulator.validation.tools import check_tools
from agentweb.emulator.validation.version_rules import check_version_rules
from agentweb.emulator.versions import Version

#: No conversation is kept between requests; the SDK then falls back to sending all of it.
_NO_THREADS = "thread: this request cannot be threaded"
_UNTHREADED = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


def validate_call(
    body: bytes,
    *,
    account: Account,
    betas: frozenset[str],
    version: Version,
    counting: bool,
    is_batched: bool = False,
) -> Call:
    value = _decode(body)
    if value.get("compaction") is not None and ON_DEMAND_BETA not in betas:
        raise Invalid(f"compaction: requires anthropic-beta: {ON_DEMAND_BETA}")
    if counting:
        # Token counting ignores the field, so its content is not checked.
        value = {name: field for name, field in value.items() if name != "compaction"}
    try:
        _shape(betas, version.has_sampling, counting)(value)
    except Misfit as misfit:
        raise misfit.refusal() from None
    # A system message may consist of settings alone.
    for message in value["messages"]:
        message.setdefault("content", [])
    if value.get("thread") is not None:
        raise ApiError(400, _NO_THREADS, {**_UNTHREADED})
    model = find_model(value["model"])
    if model is None:
        raise ApiError(404, f"model: {value['model']}")
    for hop in value.get("fallbacks") or ():
        if isinstance(hop, dict) and find_model(hop["model"]) is None:
            raise ApiError(404, f"model: {hop['model']}")
    call = Call(value, model, account, betas, is_batched=is_batched)
    _check_rules(call, version, counting=counting)
    return call


def _check_rules(call: Call, version: Version, *, counting: bool) -> None:
    body, model, betas = call.body, call.model, call.betas
    if not counting:
        check_max_tokens(call)
        check_sampling(body, model)
        check_stop_sequences(body)
    check_place_and_speed(body, model)
    check_thinking(body, model)
    check_effort(body, model)
    check_tools(body, model)
    check_mcp_servers(body, betas)
    _check_format(body)
    check_messages(body)
    check_version_rules(body, version)
    check_document_citations(body)
    check_media(body, model)
    check_system_messages(body, model, betas)
    if body.get("compaction"):
        check_finished(body["messages"])
    check_pairs(body["messages"])
    if not body.get("compaction"):
        check_final_thinking(call)
        check_end(body, model)
    check_thinking_start(body)
    check_cache_marks(body)
    check_compaction(body, model, betas)


def _check_format(body: json_codec.Object) -> None:
    wanted = (body.get("output_config") or {}).get("format")
    if wanted:
        check_grammar(wanted["schema"], "output_config.format.schema")


def _decode(body: bytes) -> json_codec.Object:
    try:
        value = json_codec.decode_request(body)
    except json_codec.NotJson as error:
        raise Invalid(f"The request body is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise Invalid("Input should be a valid dictionary or object to extract fields from")
    return value


@lru_cache(maxsize=64)
def _shape(betas: frozenset[str], has_sampling: bool, counting: bool) -> Check:
    return request_shape(betas, has_sampling=has_sampling, counting=counting)
