"""Turn a scene's reply into the answer of the API: thinking first, ids, limits, token counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from agentweb.emulator import json_codec
from agentweb.emulator.ids import make_id
from agentweb.emulator.model_catalogue import Model, Tokenizer
from agentweb.emulator.scenes.scene import Raw, Reply, ServerUse, Text, Think, ToolUse
from agentweb.emulator.signatures import Chain, Seal
from agentweb.emulator.tokens import CALL_TOKENS, count_text, fit_text

_NOT_WRITTEN = frozenset({"fallback"})
_THOUGHT = "The request is clear; I answer it from what is in view."


@dataclass(frozen=True, slots=True)
class Piece:
    """One content block: its start event, the text of its deltas, its final form."""

    opening: json_codec.Object
    block: json_codec.Object
    #: Text of the deltas; None for a block that arrives complete in its start.
    text: str | None
    tokens: int
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    pieces: tuple[Piece, ...]
    stop_reason: str
    stop_sequence: str | None
    stop_details: json_codec.Object | None
    output_tokens: int
    thinking_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the request allows for the answer."""

    model: Model
    account: str
    thinking: bool
    #: Thinking is off, but narration between tool calls still comes as thinking.
    updates: bool
    display: str
    #: Fewest tokens of thinking: more than a summary of the thinking shows.
    min_thinking: int
    max_tokens: int
    #: Tokens left in the context window; the smaller of the two limits stops the answer.
    room: int
    stop_sequences: tuple[str, ...]
    nonce: bytes


def compose(reply: Reply, terms: Terms, chain: Chain) -> Answer:
    """Build the content blocks of a reply within the terms; add them to the chain."""
    pieces: list[Piece] = []
    stop, sequence = reply.effective_stop, None
    limit = left = min(terms.max_tokens, terms.room)
    for index, block in enumerate(_order(reply, terms)):
        shown_block, sequence = _stop_at(block, terms.stop_sequences)
        piece = _lay_out(shown_block, index, terms, chain)
        cut = _fit(piece, left, terms.model.tokenizer)
        if isinstance(shown_block, Think) and piece.tokens > left > 0:
            # All remaining tokens went into thinking, and no text follows.
            text = fit_text(shown_block.text, left, terms.model.tokenizer)
            cut = _think(replace(shown_block, text=text, least=left), terms, chain)
        if cut is not None:
            pieces.append(cut)
            _absorb(chain, cut)
            left -= cut.tokens
        if cut is not piece:
            stop = (
                "max_tokens" if terms.max_tokens <= terms.room else "model_context_window_exceeded"
            )
            break
        if sequence is not None:
            stop = "stop_sequence"
            break
    thinking = sum(p.tokens for p in pieces if p.block["type"].endswith("thinking"))
    total = max(1, sum(p.tokens for p in pieces) + 2)
    return Answer(
        tuple(pieces),
        stop,
        sequence,
        reply.stop_details,
        min(total, max(1, limit)),
        thinking,
    )


@dataclass(frozen=True, slots=True)
class _ServerCall:
    use: ServerUse
    id: str


_Part: TypeAlias = Text | ToolUse | Raw | Think | _ServerCall


def _order(reply: Reply, terms: Terms) -> list[_Part]:
    """Put thinking first; narration becomes thinking for models that do so."""
    ordered: list[_Part] = [*reply.results]
    places_itself = any(isinstance(block, Think) for block in reply.blocks)
    if terms.thinking and not places_itself and not reply.is_thoughtless:
        ordered.append(Think(reply.thinking or _THOUGHT, terms.min_thinking))
    calls = any(isinstance(block, (ToolUse, ServerUse)) for block in reply.blocks)
    moves = calls and (terms.updates or (terms.thinking and terms.model.narrates_in_thinking))
    waiting: list[Raw] = []
    for block in reply.blocks:
        match block:
            case Text(text, narration=True) if moves:
                ordered.append(Think(text))
            case Think() if not terms.thinking:
                continue
            case ServerUse():
                call_id = make_id("srvtoolu", terms.nonce, str(len(ordered)).encode())
                ordered.append(_ServerCall(block, call_id))
                if block.result is not None:
                    waiting.append(Raw(result_block(block.name, call_id, block.result)))
                if not block.is_joined:
                    ordered += waiting
                    waiting = []
            case _:
                ordered.append(block)
    return ordered


def result_block(name: str, call_id: str, content: json_codec.Value) -> json_codec.Object:
    return {"type": f"{name}_tool_result", "tool_use_id": call_id, "content": content}


def _lay_out(block: _Part, index: int, terms: Terms, chain: Chain) -> Piece:
    tokenizer = terms.model.tokenizer
    match block:
        case Think():
            return _think(block, terms, chain)
        case Text(text, citations=citations):
            opening: json_codec.Object = {"type": "text", "text": ""}
            full_block: json_codec.Object = {"type": "text", "text": text}
            if citations:
                opening, full_block = (
                    opening | {"citations": []},
                    full_block | {"citations": [*citations]},
                )
            return Piece(opening, full_block, text, count_text(text, tokenizer))
        case ToolUse():
            return _use_tool(block, index, terms)
        case _ServerCall(use, call_id):
            text = json_codec.encode(use.input).decode(errors="replace")
            head: json_codec.Object = {"type": "server_tool_use", "id": call_id, "name": use.name}
            tokens = count_text(use.name + text, tokenizer) + CALL_TOKENS
            return Piece(head | {"input": {}}, head | {"input": use.input}, text, tokens)
        case Raw(raw):
            # Results of tools and what the server inserted were not written by the model.
            written = raw["type"] not in _NOT_WRITTEN and not raw["type"].endswith("_tool_result")
            tokens = count_text(json_codec.encode(raw).decode(), tokenizer) if written else 0
            return Piece(raw, raw, None, tokens)


def _think(thought: Think, terms: Terms, chain: Chain) -> Piece:
    tokens = max(count_text(thought.text, terms.model.tokenizer), thought.least)
    shown = "" if terms.display == "omitted" and not terms.updates else thought.text
    seal = chain.seal(model=terms.model.id, account=terms.account, text=shown, tokens=tokens)
    signature = seal.encode()
    return Piece(
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking", "thinking": shown, "signature": signature},
        shown,
        tokens,
        signature,
    )


def _use_tool(use: ToolUse, index: int, terms: Terms) -> Piece:
    text = use.broken_json or json_codec.encode(use.input).decode(errors="replace")
    call_id = use.id or make_id("toolu", terms.nonce, str(index).encode())
    head: json_codec.Object = {"type": "tool_use", "id": call_id, "name": use.name}
    tokens = count_text(use.name + text, terms.model.tokenizer) + CALL_TOKENS
    caller: json_codec.Object = {"caller": {"type": "direct"}}
    return Piece(head | {"input": {}} | caller, head | {"input": use.input} | caller, text, tokens)


def _stop_at(block: _Part, sequences: tuple[str, ...]) -> tuple[_Part, str | None]:
    if not isinstance(block, Text) or block.narration:
        return block, None
    found = [(at, sequence) for sequence in sequences if (at := block.text.find(sequence)) >= 0]
    if not found:
        return block, None
    at, sequence = min(found)
    return Text(block.text[:at]), sequence


def _fit(piece: Piece, left: int, tokenizer: Tokenizer) -> Piece | None:
    """Return the part of a piece that fits; None when not even its start does."""
    if piece.tokens <= left:
        return piece
    if left <= 0 or piece.text is None or piece.block["type"] == "thinking":
        return None
    text = fit_text(piece.text, left, tokenizer)
    if piece.block["type"] == "text":
        block: json_codec.Object = {"type": "text", "text": text}
        return replace(piece, block=block, text=text, tokens=left) if text else None
    half = piece.text[: max(1, min(len(text), len(piece.text) - 2))]
    return replace(
        piece, block=piece.block | {"input": _read_complete_fields(half)}, text=half, tokens=left
    )


def _read_complete_fields(partial: str) -> json_codec.Object:
    """Return the complete fields of a truncated JSON object."""
    for end in range(len(partial), max(0, len(partial) - 4_000), -1):
        if partial[end - 1] in '"]}':
            try:
                value = json_codec.decode((partial[:end] + "}").encode())
            except json_codec.NotJson:
                continue
            return value if isinstance(value, dict) else {}
    return {}


def _absorb(chain: Chain, piece: Piece) -> None:
    if piece.block["type"] == "fallback":
        return
    if piece.block["type"] in {"thinking", "redacted_thinking"}:
        seal = Seal.decode(piece.signature or str(piece.block.get("data", "")))
        chain.previous = seal.id if seal else chain.previous
    else:
        chain.absorb("assistant", piece.block)
