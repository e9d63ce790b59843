"""The events of one answer, in the API's order, cut into deltas of uneven, seeded sizes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from json.encoder import encode_basestring
from random import Random
from typing import TypeAlias

from agentweb.emulator import json_codec
from agentweb.emulator.answer import Answer, Piece
from agentweb.emulator.streaming.steps import PING, STOP, SseEvent, event

#: Cuts a text into deltas.
Cut: TypeAlias = Callable[[str, Random], list[str]]

_SIZES = (1, 2, 3, 4, 4, 5, 6, 7, 9, 12, 17, 26)
_MEAN = sum(_SIZES) // len(_SIZES)
_SPARE = 8
_PING_WITHIN = 800

_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
    "server_tool_use": ("input_json_delta", "partial_json"),
}


def open_message(message: json_codec.Object) -> SseEvent:
    return event("message_start", {"type": "message_start", "message": message})


def piece_events(
    index: int, piece: Piece, dice: Random, together: int = 1, cut: Cut | None = None
) -> Iterator[SseEvent]:
    """Yield all events of one block; `together` deltas become one frame."""
    yield event(
        "content_block_start",
        {"type": "content_block_start", "index": index, "content_block": piece.opening},
    )
    if piece.block["type"] == "compaction" and piece.text is not None:
        yield _compaction_delta(index, piece.block)
    elif piece.text is not None:
        citations = [
            (citation["type"] == "web_search_result_location", _citation_delta(index, citation))
            for citation in piece.block.get("citations") or ()
        ]
        # Citations of web pages precede the text, those of document passages follow it.
        yield from (delta for is_first, delta in citations if is_first)
        parts = (cut or chunks)(piece.text, dice)
        yield from _deltas(index, piece, parts, dice, together)
        yield from (delta for is_first, delta in citations if not is_first)
    if piece.signature and piece.block["type"] == "thinking":
        yield _delta(index, {"type": "signature_delta", "signature": piece.signature})
    yield event("content_block_stop", {"type": "content_block_stop", "index": index})


def close_message(
    answer: Answer, usage: json_codec.Object, more: json_codec.Object, extra: json_codec.Object
) -> Iterator[SseEvent]:
    delta = more | {
        "stop_reason": answer.stop_reason,
        "stop_sequence": answer.stop_sequence,
        "stop_details": answer.stop_details,
    }
    yield event("message_delta", {"type": "message_delta", "delta": delta, "usage": usage} | extra)
    yield STOP


def chunks(text: str, dice: Random) -> list[str]:
    """Cut a text into pieces of uneven size."""
    ends = list(accumulate(dice.choices(_SIZES, k=len(text) // _MEAN + _SPARE), initial=0))
    while ends[-1] < len(text):
        ends.append(ends[-1] + dice.choice(_SIZES))
    last = bisect_left(ends, len(text))
    return [text[start:end] for start, end in pairwise(ends[: last + 1])]


def _deltas(
    index: int, piece: Piece, parts: list[str], dice: Random, together: int
) -> Iterator[SseEvent]:
    kind, field = _DELTAS[piece.block["type"]]
    head = (
        f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{index},'
        f'"delta":{{"type":"{kind}","{field}":'
    )
    if kind == "input_json_delta" or (not parts and kind == "text_delta"):
        yield SseEvent("content_block_delta", f'{head}""}}}}\n\n'.encode())
    at = 0
    ping = dice.randrange(_PING_WITHIN)
    while at < len(parts):
        end = min(at + together, ping + 1)
        yield SseEvent("content_block_delta", _join(head, parts[at:end]), True)
        at = min(end, len(parts))
        if at == ping + 1:
            yield PING
            ping = at + dice.randrange(_PING_WITHIN)


def _join(head: str, parts: list[str]) -> bytes:
    """Encode the deltas of one block together, at a third of the cost of one by one."""
    between = f"}}}}\n\n{head}"
    try:
        return f"{head}{between.join(map(encode_basestring, parts))}}}}}\n\n".encode()
    except UnicodeEncodeError:
        return b"".join(head.encode() + json_codec.quote(part) + b"}}\n\n" for part in parts)


def _compaction_delta(index: int, block: json_codec.Object) -> SseEvent:
    """Return the single delta of an automatic compaction."""
    delta = {"type": "compaction_delta"} | {
        name: block[name] for name in ("content", "encrypted_content")
    }
    return _delta(index, delta)


def _citation_delta(index: int, citation: json_codec.Object) -> SseEvent:
    return _delta(index, {"type": "citations_delta", "citation": citation})


def _delta(index: int, delta: json_codec.Object) -> SseEvent:
    body = {"type": "content_block_delta", "index": index, "delta": delta}
    return event("content_block_delta", body)
