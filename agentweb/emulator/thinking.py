"""Verify thinking blocks that come back: genuine, unchanged, in their original context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentweb.emulator import json_codec
from agentweb.emulator.call import Call
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.model_catalogue import find_model, is_readable
from agentweb.emulator.signatures import Chain, Seal, content_hash

CONTROLS_BETA = "thinking-binding-controls-2026-08-01"
Reason = Literal[
    "organization_binding_mismatch", "model_binding_mismatch", "prefix_binding_mismatch"
]

_OMITTED = content_hash("")
_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
_SYSTEM_DIFFERS = " The `system` prompt differs from the one this block was created with."
_TOOLS_DIFFER = " The `tools` differ from the ones this block was created with."
_MISSING = (
    " The `thinking` block that preceded this one when it was created is missing from this request."
)


@dataclass(frozen=True, slots=True)
class Dropped:
    message: int
    block: int
    reason: Reason

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.block}"

    def as_json(self) -> json_codec.Object:
        return {"type": "thinking_dropped", "path": self.path, "reason": self.reason}


def verify_thinking(
    call: Call, default_behavior: str, *, accepts_foreign: bool = False
) -> tuple[Chain, list[Dropped]]:
    """Check the thinking in a request; return the chain at its end and the dropped thinking.

    With `accepts_foreign` a signature made elsewhere is not an error: its thinking is dropped.
    """
    chain = Chain(system=call.body.get("system"), tools=call.body.get("tools"))
    walk = _Walk(call, chain, _behavior(call, default_behavior), accepts_foreign=accepts_foreign)
    for index, message in enumerate(call.body["messages"]):
        walk.enter(index, message)
    return chain, walk.dropped


def _behavior(call: Call, default: str) -> str:
    binding = (call.body.get("thinking") or {}).get("block_binding") or {}
    asked = binding.get("prefix_mismatch_behavior")
    if call.is_batched:
        default = "drop_block"
    elif call.model.strict_binding:
        default = "error"
    return str(asked or default)


class _Walk:
    def __init__(self, call: Call, chain: Chain, behavior: str, *, accepts_foreign: bool) -> None:
        self._call, self._accepts_foreign = call, accepts_foreign
        self._chain = chain
        self._behavior = behavior
        self._latest = max(
            (i for i, m in enumerate(call.body["messages"]) if m["role"] == "assistant"), default=-1
        )
        self._run_broken = False
        self.dropped: list[Dropped] = []

    def enter(self, index: int, message: json_codec.Object) -> None:
        for at, block in enumerate(as_blocks(message["content"])):
            if block["type"] in {"thinking", "redacted_thinking"}:
                self._thinking(index, at, block)
            else:
                self._run_broken = False
                self._chain.absorb(message["role"], block)

    def _thinking(self, index: int, at: int, block: json_codec.Object) -> None:
        path = f"messages.{index}.content.{at}"
        seal = Seal.decode(str(block.get("signature") or block.get("data") or ""))
        if seal is None and self._accepts_foreign:
            self._run_broken = True
            self.dropped.append(Dropped(index, at, "model_binding_mismatch"))
            return
        if seal is None:
            raise Invalid(f"{path}: Invalid `signature` in `thinking` block")
        # Text in a thinking block that was omitted is not read.
        changed = content_hash(str(block.get("thinking", ""))) != seal.content != _OMITTED
        if block["type"] == "thinking" and changed:
            text = _MODIFIED if index == self._latest else "Invalid `signature` in `thinking` block"
            raise Invalid(f"{path}: {text}")
        reason = self._mismatch(seal)
        if reason is None:
            self._chain.previous = seal.id
            return
        if reason != "model_binding_mismatch" and self._behavior == "error":
            raise Invalid(f"{path}: {self._refusal(seal, reason)}")
        self._run_broken = True
        self.dropped.append(Dropped(index, at, reason))

    def _mismatch(self, seal: Seal) -> Reason | None:
        maker, reader = find_model(seal.model), self._call.model
        if (
            maker is not None
            and maker.bound_account
            and seal.account != self._call.account.organization
        ):
            return "organization_binding_mismatch"
        if maker is None or not is_readable(maker, by=reader):
            return "model_binding_mismatch"
        if not (reader.bound_prefix and maker.bound_prefix):
            return None
        chain = self._chain
        whole = (seal.state, seal.system, seal.tools) == (chain.state, chain.system, chain.tools)
        follows = not chain.previous or chain.previous == seal.previous
        return None if whole and follows and not self._run_broken else "prefix_binding_mismatch"

    def _refusal(self, seal: Seal, reason: Reason) -> str:
        if reason == "organization_binding_mismatch":
            return (
                "Invalid `signature` in `thinking` block. The block is bound to a "
                "different organization."
            )
        text = (
            "Invalid `signature` in `thinking` block. The block is bound to a "
            "different conversation. Remove the "
            'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )
        if CONTROLS_BETA not in self._call.betas:
            text += f" Setting it requires the `anthropic-beta: {CONTROLS_BETA}` header."
        if seal.system != self._chain.system:
            return text + _SYSTEM_DIFFERS
        if seal.tools != self._chain.tools:
            return text + _TOOLS_DIFFER
        same_state = seal.state == self._chain.state
        return text + (_MISSING if same_state and self._chain.previous != seal.previous else "")
