"""Cache diagnostics: compare a request with an earlier one and say why the cache missed.

Only requests that ask for it are stored, by the id of their answer and per workspace. The reason is
the first difference, in the order model, tools, system, messages; a difference that is not in the
text (thinking, tool choice) is reported as unavailable. Without a difference there is no reason,
even if the cache entry has expired.
"""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.cache import Plan
from agentweb.emulator.call import Call, cache_salts
from agentweb.emulator.fingerprints import Fingerprint
from agentweb.emulator.ids import digest
from agentweb.emulator.state import Emulator


def diagnose(call: Call, emulator: Emulator, plan: Plan, message_id: str) -> json_codec.Object:
    """Return the `diagnostics` of a message if the request wants them; remember the request."""
    requested = call.body.get("diagnostics")
    if requested is None:
        return {}
    made = _fingerprint(call, emulator, plan)
    emulator.fingerprints.keep(call, message_id, made)
    named = requested.get("previous_message_id")
    if named is None:
        return {"diagnostics": None}
    before = emulator.fingerprints.of(call, named)
    if before is None:
        return _because({"type": "previous_message_not_found"})
    kind = _difference(before, made)
    if not kind:
        return {"diagnostics": None}
    if kind == "unavailable":
        return _because({"type": kind})
    missed = max(0, before.cached - plan.usage.read)
    return _because({"type": kind, "cache_missed_input_tokens": missed})


def _because(reason: json_codec.Object) -> json_codec.Object:
    return {"diagnostics": {"cache_miss_reason": reason}}


def _difference(before: Fingerprint, now: Fingerprint) -> str:
    if before.model != now.model:
        return "model_changed"
    if before.tools != now.tools:
        return "tools_changed"
    if before.system != now.system:
        return "system_changed"
    if now.messages[: len(before.messages)] != before.messages:
        return "messages_changed"
    return "" if before.choices == now.choices else "unavailable"


def _fingerprint(call: Call, emulator: Emulator, plan: Plan) -> Fingerprint:
    line = emulator.counter.count_units(call.body, call.model.tokenizer)
    keys = {
        level: tuple(unit.key for unit in line if unit.level == level)
        for level in ("tools", "system", "messages")
    }
    usage = plan.usage
    return Fingerprint(
        model=f"{call.model.id} {call.body.get('speed') or 'standard'}",
        tools=digest(*keys["tools"]),
        system=digest(*keys["system"]),
        messages=keys["messages"],
        choices=cache_salts(call)["messages"],
        cached=usage.read + usage.write_5m + usage.write_1h,
    )
