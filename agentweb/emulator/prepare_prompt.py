"""From a validated body to the prompt the model reads: compacted, edited, counted."""

from __future__ import annotations

from dataclasses import dataclass

from agentweb.emulator import json_codec
from agentweb.emulator.cache import Plan
from agentweb.emulator.call import Call, cache_salts, view_of
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.compaction import skip_compacted
from agentweb.emulator.context_editing import Edited, edit_context
from agentweb.emulator.errors import Invalid
from agentweb.emulator.file_store import fill_in
from agentweb.emulator.prompt_units import Unit, total_tokens
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.signatures import Chain
from agentweb.emulator.state import Emulator
from agentweb.emulator.thinking import Dropped, verify_thinking


@dataclass(frozen=True, slots=True)
class Prepared:
    body: json_codec.Object
    view: Request
    chain: Chain
    line: list[Unit]
    tokens: int
    #: Tokens before context editing.
    original_tokens: int
    dropped: list[Dropped]
    edits: list[json_codec.Object] | None


def plan_cache(
    line: list[Unit], call: Call, emulator: Emulator, earlier: tuple[Plan, ...] = ()
) -> Plan:
    """Plan how the prompt cache serves these units, after earlier rounds of the same request."""
    return emulator.cache.plan(
        line,
        model=call.model,
        salts=cache_salts(call),
        automatic=call.automatic_cache,
        now=emulator.clock.now(),
        earlier=earlier,
    )


def prepare(call: Call, emulator: Emulator) -> Prepared:
    chain, dropped = verify_thinking(
        call, emulator.prefix_mismatch, accepts_foreign=emulator.accepts_foreign_signatures
    )
    now = emulator.clock.now()
    body = fill_in(_without(call.body, dropped), emulator.files, call.account, now)
    if not call.model.keeps_thinking:
        body = _last_turn_thinking(body)
    body = body | {"messages": _shown(skip_compacted(body["messages"]))}
    before = total_tokens(emulator.counter.count_units(body, call.model.tokenizer))
    edited: Edited = edit_context(body, call, emulator.counter, before)
    line = emulator.counter.count_units(edited.body, call.model.tokenizer)
    tokens = total_tokens(line)
    if tokens > call.model.window:
        raise Invalid(f"prompt is too long: {tokens} tokens > {call.model.window} maximum")
    return Prepared(
        edited.body, view_of(edited.body), chain, line, tokens, before, dropped, edited.applied
    )


def _shown(messages: list[json_codec.Object]) -> list[json_codec.Object]:
    """Drop what is sent but not read: fallback boundaries, system messages of past turns."""
    latest = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    return [
        message | {"content": [b for b in as_blocks(message["content"]) if b["type"] != "fallback"]}
        for index, message in enumerate(messages)
        if message.get("clear_at") != "next_user_message" or index > latest
    ]


def _without(body: json_codec.Object, dropped: list[Dropped]) -> json_codec.Object:
    if not dropped:
        return body
    dropped_places = {(drop.message, drop.block) for drop in dropped}
    messages = [
        message
        | {
            "content": [
                b
                for at, b in enumerate(as_blocks(message["content"]))
                if (index, at) not in dropped_places
            ]
        }
        for index, message in enumerate(body["messages"])
    ]
    return body | {"messages": [message for message in messages if message["content"]]}


def _last_turn_thinking(body: json_codec.Object) -> json_codec.Object:
    """Keep only the thinking of the running turn, as older models do."""
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


def _plain(message: json_codec.Object) -> json_codec.Object:
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return message
    content = [b for b in message["content"] if b["type"] not in {"thinking", "redacted_thinking"}]
    return message | {"content": content}
