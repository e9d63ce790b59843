"""A tool's result made fit to be stored and sent: clean text, bounded size, its true size stated.

A result may have any size and shape, so it is read in pieces that take milliseconds: the thread of
its tool (tool_threads.py) never holds the interpreter for long. What exceeds the cap is cut between
characters or left out, and a notice states the full size and SHA-256, so that people can compare it
with the source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any

from tools.framework.clean_text import clean_text, clean_value
from tools.framework.tool import Content, ToolResult

#: Characters that are read at a time; takes about as long as the interval of thread switches.
PIECE = 1 << 16
#: Most blocks of one result; deepest nesting within one.
MOST_BLOCKS, DEEPEST = 200, 40
#: Bytes of the details, which only people see.
MOST_DETAILS = 50_000
_LARGEST = 1 << 63
#: Most parts of a JSON value, and the fewest bytes that each of them takes.
MOST_PARTS, _PART = 200_000, 2


class ResultError(TypeError):
    """A tool returned something that is not content."""

    code = "bad_result"


@dataclass(frozen=True, slots=True)
class _Text:
    """The first bytes of a text, cleaned, with size and digest of the full text."""

    kept: str
    kept_size: int
    size: int
    digest: str

    @property
    def is_cut(self) -> bool:
        return self.kept_size < self.size


def clean_result(result: object, most: int) -> ToolResult:
    """Return a result of at most `most` bytes; raises ResultError when it is not one."""
    if isinstance(result, str):
        result = ToolResult(result)
    if not isinstance(result, ToolResult) or not isinstance(result.content, str | list):
        raise ResultError(f"a result is text or a list of blocks, not {type(result).__name__}")
    details = _bound_details(result.details)
    if not isinstance(result.content, str):
        return ToolResult(_bound_blocks(result.content, most), result.is_error, details)
    text = _read_text(result.content, most)
    if not text.is_cut:
        return ToolResult(text.kept, result.is_error, details)
    cut = {"bytes": text.size, "sha256": text.digest, "kept_bytes": text.kept_size}
    return ToolResult(_append_notice(text, most), result.is_error, {**details, **cut})


def _bound_details(details: Any) -> dict[str, Any]:
    """Return the details if they are JSON of a size that can be stored."""
    size = _measure(details) if isinstance(details, dict) else None
    if size is None or size > MOST_DETAILS:
        return {"left_out": "details"}
    cleaned: Any = clean_value(details)
    return dict(cleaned)


def _append_notice(text: _Text, most: int) -> str:
    notice = f"{most:,} of {text.size:,} bytes kept; SHA-256 of the whole: {text.digest}"
    return f"{text.kept}\n[output cut: {notice}]"


def _read_text(text: str, most: int) -> _Text:
    """Clean a text piece by piece, so that no thread holds the interpreter for long."""
    digest, size, room = hashlib.sha256(), 0, most
    kept: list[str] = []
    kept_size = 0
    for at in range(0, len(text), PIECE):
        piece = clean_text(text[at : at + PIECE])
        data = piece.encode()
        digest.update(data)
        size += len(data)
        if room > 0:
            fits = data if len(data) <= room else data[:room].decode(errors="ignore").encode()
            kept.append(fits.decode())
            kept_size += len(fits)
            room -= len(data)
    return _Text("".join(kept), kept_size, size, digest.hexdigest())


def _bound_blocks(blocks: list[Any], most: int) -> Content:
    """Keep the blocks that fit, in order; replace each other block by a notice."""
    kept: list[dict[str, Any]] = []
    for block in blocks[:MOST_BLOCKS]:
        one, size = _bound_block(block, max(most, 0))
        kept.append(one)
        most -= size
    if len(blocks) > MOST_BLOCKS:
        kept.append(_omission_block(f"{len(blocks) - MOST_BLOCKS:,} more blocks"))
    return kept


def _bound_block(block: Any, most: int) -> tuple[dict[str, Any], int]:
    """Return a block of at most `most` bytes, and the bytes it takes."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return _omission_block(f"a {type(block).__name__} that is no block"), 0
    kind = clean_text(block["type"][:40])
    if kind == "text":
        if not isinstance(block.get("text"), str):
            return _omission_block("a text without text"), 0
        text = _read_text(block["text"], most)
        shown = _append_notice(text, most) if text.is_cut else text.kept
        return {"type": "text", "text": shown}, text.kept_size
    size = _measure(block)
    if size is None:
        return _omission_block(f"{kind}, not JSON, nested too deeply or of too many parts"), 0
    if size <= most:
        one: Any = clean_value(block)
        size = len(json.dumps(one))
        if size <= most:
            return one, size
    return _omission_block(f"{kind}, {size:,} bytes or more"), 0


def _omission_block(what: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[left out: {what}]"}


def _measure(value: Any) -> int | None:
    """Return a lower bound of the bytes of a JSON value; None if it is not JSON, or too deep."""
    size = 0
    for count, (item, depth) in enumerate(_walk(value)):
        match item:
            case str():
                size += len(item) + _PART
            case int() if abs(item) < _LARGEST:
                size += _PART
            case float() if isfinite(item):
                size += _PART
            case None | list() | dict():
                size += _PART
            case _:
                return None
        if depth > DEEPEST or count > MOST_PARTS:
            return None
    return size


def _walk(value: Any) -> Iterator[tuple[Any, int]]:
    """Yield each part of a value with its depth, keys included, without recursion."""
    walks: list[Iterator[Any]] = [iter((value,))]
    while walks:
        for item in walks[-1]:
            yield item, len(walks)
            if isinstance(item, dict):
                walks.append(chain.from_iterable(item.items()))
                break
            if isinstance(item, list):
                walks.append(iter(item))
                break
        else:
            walks.pop()
