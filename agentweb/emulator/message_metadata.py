"""Fields of a message besides its content: service tier, server tool usage, container."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.answer import Answer
from agentweb.emulator.call import Call
from agentweb.emulator.clock import rfc3339
from agentweb.emulator.ids import make_id
from agentweb.emulator.prepare_prompt import Prepared
from agentweb.emulator.thinking import CONTROLS_BETA
from agentweb.emulator.validation.server_results import SERVER_RESULTS

_CONTAINER_SECONDS = 300


def transformations(call: Call, prepared: Prepared) -> json_codec.Object:
    """Return the thinking that was dropped from the request, if the beta header asks for it."""
    if CONTROLS_BETA not in call.betas:
        return {}
    return {"input_transformations": [drop.as_json() for drop in prepared.dropped]}


def where(call: Call) -> json_codec.Object:
    """Return the fields of the usage that are not counts."""
    more = {"speed": call.speed} if call.speed else {}
    return {"service_tier": call.tier, "inference_geo": call.geo} | more


def server_uses(answer: Answer) -> json_codec.Object:
    """Return the counts of tools that ran on the API's side; empty if none did."""
    types = [piece.block["type"] for piece in answer.pieces]
    if not any(kind == "server_tool_use" or kind in SERVER_RESULTS for kind in types):
        return {}
    counts = {
        "web_search_requests": searches(answer),
        "web_fetch_requests": types.count("web_fetch_tool_result"),
    }
    return {"server_tool_use": counts}


def searches(answer: Answer) -> int:
    """Return the number of billed searches; one that ended in an error is not billed."""
    return sum(is_search(piece.block) for piece in answer.pieces)


def is_search(block: json_codec.Object) -> bool:
    return block["type"] == "web_search_tool_result" and isinstance(block["content"], list)


def container(call: Call, answer: Answer, nonce: bytes, now: float) -> json_codec.Object:
    """Return the container in which code ran: the requested one, or a new one."""
    kinds = [f"{p.block['type']} {p.block.get('name', '')}" for p in answer.pieces]
    if not any("code_execution" in kind for kind in kinds):
        return {}
    requested = call.body.get("container")
    name = requested if isinstance(requested, str) else (requested or {}).get("id")
    expires = rfc3339(now + _CONTAINER_SECONDS)
    return {"container": {"id": name or make_id("container", nonce), "expires_at": expires}}
