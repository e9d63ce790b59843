"""Server-side compaction: a block that stands for everything before it.

Automatic compaction answers with the block first and goes on; on demand the block is all there is.
Either way the block carries the state of the range it replaces, so thinking kept behind it stays
valid, and its tokens are billed as an iteration of their own that the top-level figures leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentweb.emulator import json_codec
from agentweb.emulator.answer import Answer, Piece
from agentweb.emulator.call import Call
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import ApiError
from agentweb.emulator.faults.fault import summary_fault_in
from agentweb.emulator.scenes.scene import Text
from agentweb.emulator.scenes.summary import bad_summary, extractive_summary
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.signatures import Chain
from agentweb.emulator.tokens import count_text

_SUMMARY_TOKENS = 4_096
_DEFAULT_TRIGGER = 150_000
_FAILURES = {
    "empty": "end_turn",
    "blank": "end_turn",
    "cut": "max_tokens",
    "window": "model_context_window_exceeded",
    "toolcall": "tool_use",
    "refusal": "refusal",
}


def skip_compacted(messages: list[json_codec.Object]) -> list[json_codec.Object]:
    """Return the messages from the last compaction block with a summary on."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] != "assistant":
            continue
        content = as_blocks(messages[index]["content"])
        for at in range(len(content) - 1, -1, -1):
            if content[at]["type"] == "compaction" and content[at].get("content") is not None:
                return [messages[index] | {"content": content[at:]}, *messages[index + 1 :]]
    return messages


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of one compaction."""

    piece: Piece | None
    stop_reason: str
    output_tokens: int

    def answer(self) -> Answer:
        pieces = (self.piece,) if self.piece is not None else ()
        return Answer(pieces, self.stop_reason, None, None, self.output_tokens, 0)


def order_in(call: Call) -> json_codec.Object | None:
    """Return the automatic compaction that a request configures; None without one."""
    edits = (call.body.get("context_management") or {}).get("edits") or ()
    return next((edit for edit in edits if edit["type"] == "compact_20260112"), None)


def is_due(order: json_codec.Object, tokens: int) -> bool:
    trigger = order.get("trigger") or {"value": _DEFAULT_TRIGGER}
    return bool(tokens >= trigger["value"])


def compact(call: Call, view: Request, chain: Chain, *, signed: bool) -> Compacted:
    """Summarise the view into one block; fault words make it fail as compaction fails."""
    fault = summary_fault_in(view.visible)
    if fault == "error":
        raise ApiError(529, "Overloaded", {"error_code": "compaction_unavailable"})
    text = _text(replace(view, max_tokens=_SUMMARY_TOKENS), fault)
    tokens = count_text(text, call.model.tokenizer)
    if fault in _FAILURES:
        failed = None if signed else _automatic_piece(None, "", 1)
        return Compacted(failed, _FAILURES[fault], tokens)
    seal = chain.seal(
        model=call.model.id, account=call.account.organization, text=text, tokens=tokens
    )
    if signed:
        block = {"type": "compaction", "content": text, "signature": seal.encode()}
        return Compacted(Piece(block, block, None, tokens), "compaction", tokens)
    piece = _automatic_piece(text, seal.encode(), tokens)
    chain.absorb("assistant", piece.block)
    return Compacted(piece, "compaction", tokens)


def _text(view: Request, fault: str) -> str:
    """Return the summary, or the bad one that a fault word orders."""
    bad = bad_summary(fault, view) if fault not in _FAILURES else None
    texts = [block.text for block in bad.blocks if isinstance(block, Text)] if bad else []
    return texts[0] if texts else extractive_summary(view, _SUMMARY_TOKENS)


def view_after(view: Request, piece: Piece) -> Request:
    """Return the view with the summary and the messages of the running turn."""
    tail = view.messages[max(0, view.prompt_at) :]
    head = {"role": "assistant", "content": [piece.block]}
    return replace(view, messages=(head, *tail))


def _automatic_piece(text: str | None, sealed: str, tokens: int) -> Piece:
    opening = {"type": "compaction", "content": None, "encrypted_content": None}
    block = {"type": "compaction", "content": text, "encrypted_content": sealed or None}
    return Piece(opening, block, text or "", tokens, sealed)
