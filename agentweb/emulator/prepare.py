"""From a valid body to what the model reads: compaction applied, unreadable thinking out, edits
made, counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentweb.emulator import wire
from agentweb.emulator.blocks import as_blocks
from agentweb.emulator.cache import Plan
from agentweb.emulator.call import Call, cache_salts, view_of
from agentweb.emulator.compaction import skip_compacted
from agentweb.emulator.editing import Edited, edit_context
from agentweb.emulator.errors import Invalid
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.signatures import Chain
from agentweb.emulator.state import Emulator
from agentweb.emulator.thinking import Dropped, verify_thinking
from agentweb.emulator.units import Unit, total_tokens


@dataclass(frozen=True, slots=True)
class Prepared:
    body: wire.Object
    view: Request
    chain: Chain
    line: list[Unit]
    tokens: int
    #: Tokens before context editing.
    original_tokens: int
    dropped: list[Dropped]
    edits: list[wire.Object] | None


def plan_cache(line: list[Unit], call: Call, emulator: Emulator) -> Plan:
    """How the prompt cache serves these units now."""
    return emulator.cache.plan(
        line,
        model=call.model,
        salts=cache_salts(call),
        automatic=call.automatic_cache,
        now=emulator.clock.now(),
    )


def prepare(call: Call, emulator: Emulator) -> Prepared:
    chain, dropped = verify_thinking(call, emulator.prefix_mismatch)
    body = _without(call.body, dropped)
    if not call.model.keeps_thinking:
        body = _last_turn_thinking(body)
    body = body | {"messages": _shown(skip_compacted(body["messages"]))}
    before = total_tokens(emulator.counter.units(body, call.model.tokenizer))
    edited: Edited = edit_context(body, call, emulator.counter, before)
    line = emulator.counter.units(edited.body, call.model.tokenizer)
    tokens = total_tokens(line)
    if tokens > call.model.window:
        raise Invalid(f"prompt is too long: {tokens} tokens > {call.model.window} maximum")
    return Prepared(
        edited.body, view_of(edited.body), chain, line, tokens, before, dropped, edited.applied
    )


def _shown(messages: list[wire.Object]) -> list[wire.Object]:
    """Without what is sent but never shown: fallback boundaries, system messages of past turns."""
    latest = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    return [
        message | {"content": [b for b in as_blocks(message["content"]) if b["type"] != "fallback"]}
        for index, message in enumerate(messages)
        if message.get("clear_at") != "next_user_message" or index > latest
    ]


def _without(body: wire.Object, dropped: list[Dropped]) -> wire.Object:
    if not dropped:
        return body
    gone = {(drop.message, drop.block) for drop in dropped}
    messages = [
        message
        | {
            "content": [
                b for at, b in enumerate(as_blocks(message["content"])) if (index, at) not in gone
            ]
        }
        for index, message in enumerate(body["messages"])
    ]
    return body | {"messages": [message for message in messages if message["content"]]}


def _last_turn_thinking(body: wire.Object) -> wire.Object:
    """Older models read only the thinking of the running turn."""
    messages = body["messages"]
    spoke = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user"
        and any(block["type"] != "tool_result" for block in as_blocks(message["content"]))
    ]
    last = spoke[-1] if spoke else -1
    kept = [m if index > last else _plain(m) for index, m in enumerate(messages)]
    return body | {"messages": [message for message in kept if message["content"]]}


def _plain(message: wire.Object) -> wire.Object:
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return message
    content = [b for b in message["content"] if b["type"] not in {"thinking", "redacted_thinking"}]
    return message | {"content": content}
