"""The frames of one answer, in the API's order, cut into deltas of uneven size by a seeded die."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentweb.emulator import wire
from agentweb.emulator.answer import Answer, Piece
from agentweb.emulator.streaming.steps import PING, STOP, Frame, event

_SIZES = (1, 2, 3, 4, 4, 5, 6, 7, 9, 12, 17, 26)
_PING_ONCE_IN = 400

_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
    "server_tool_use": ("input_json_delta", "partial_json"),
}


def open_message(message: wire.Object) -> Frame:
    return event("message_start", {"type": "message_start", "message": message})


def piece_frames(index: int, piece: Piece, dice: Random) -> Iterator[Frame]:
    yield event(
        "content_block_start",
        {"type": "content_block_start", "index": index, "content_block": piece.opening},
    )
    if piece.block["type"] == "compaction" and piece.text is not None:
        yield _compaction_delta(index, piece.block)
    elif piece.text is not None:
        yield from _deltas(index, piece, piece.text, dice)
    if piece.signature and piece.block["type"] == "thinking":
        delta = {"type": "signature_delta", "signature": piece.signature}
        yield event(
            "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        )
    yield event("content_block_stop", {"type": "content_block_stop", "index": index})


def close_message(answer: Answer, usage: wire.Object, extra: wire.Object) -> Iterator[Frame]:
    delta = {
        "stop_reason": answer.stop_reason,
        "stop_sequence": answer.stop_sequence,
        "stop_details": answer.stop_details,
    }
    yield event("message_delta", {"type": "message_delta", "delta": delta, "usage": usage} | extra)
    yield STOP


def chunks(text: str, dice: Random) -> Iterator[str]:
    at, end, choose = 0, len(text), dice.choice
    while at < end:
        size = choose(_SIZES)
        yield text[at : at + size]
        at += size


def _deltas(index: int, piece: Piece, text: str, dice: Random) -> Iterator[Frame]:
    kind, field = _DELTAS[piece.block["type"]]
    head = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,' % index
    head += b'"delta":{"type":"%b","%b":' % (kind.encode(), field.encode())
    if kind == "input_json_delta" or (not text and kind == "text_delta"):
        yield Frame("content_block_delta", head + b'""}}\n\n')
    quote, roll = wire.quote, dice.random
    for chunk in chunks(text, dice):
        yield Frame("content_block_delta", head + quote(chunk) + b"}}\n\n", True)
        if roll() * _PING_ONCE_IN < 1:
            yield PING


def _compaction_delta(index: int, block: wire.Object) -> Frame:
    """An automatic compaction arrives in one delta."""
    delta = {"type": "compaction_delta"} | {
        name: block[name] for name in ("content", "encrypted_content")
    }
    return event(
        "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    )
