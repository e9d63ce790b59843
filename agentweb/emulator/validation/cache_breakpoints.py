"""Cache breakpoints: at most four, long lifetimes before short ones."""

from __future__ import annotations

from collections.abc import Iterator

from agentweb.emulator import json_codec
from agentweb.emulator.errors import Invalid

_MOST = 4
_ORDER = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
    "block. Note that blocks are "
    "processed in the following order: `tools`, `system`, `messages`."
)


def check_cache_marks(body: json_codec.Object) -> None:
    marks = list(_marks(body))
    automatic = body.get("cache_control")
    found = len(marks) + bool(automatic)
    if found > _MOST:
        raise Invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {found}.")
    short = False
    for path, ttl in marks:
        if ttl == "1h" and short:
            raise Invalid(f"{path}.cache_control.ttl: {_ORDER}")
        short = short or ttl == "5m"
    if automatic:
        _check_automatic(automatic.get("ttl") or "5m", marks, _last_path(body), short=short)


def _check_automatic(ttl: str, marks: list[tuple[str, str]], last: str, *, short: bool) -> None:
    if marks and marks[-1][0] == last and marks[-1][1] != ttl:
        raise Invalid(
            f"cache_control.ttl: the last block already has cache_control with "
            f"ttl='{marks[-1][1]}', "
            f"which differs from the top-level ttl='{ttl}'"
        )
    if ttl == "1h" and short:
        raise Invalid(f"cache_control.ttl: {_ORDER}")


def _last_path(body: json_codec.Object) -> str:
    index = len(body["messages"]) - 1
    content = body["messages"][index]["content"]
    return f"messages.{index}.content.{len(content) - 1 if isinstance(content, list) else 0}"


def _marks(body: json_codec.Object) -> Iterator[tuple[str, str]]:
    for index, tool in enumerate(body.get("tools") or ()):
        yield from _mark(f"tools.{index}", tool)
    system = body.get("system")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        yield from _mark(f"system.{index}", block)
    for index, message in enumerate(body["messages"]):
        if isinstance(message["content"], list):
            for at, block in enumerate(message["content"]):
                yield from _block_marks(f"messages.{index}.content.{at}", block)


def _block_marks(path: str, block: json_codec.Object) -> Iterator[tuple[str, str]]:
    """Yield the breakpoints of a block; a result's nested blocks come before the result itself."""
    inner = block.get("content") if block["type"] == "tool_result" else None
    for at, part in enumerate(inner if isinstance(inner, list) else ()):
        yield from _mark(f"{path}.content.{at}", part)
    yield from _mark(path, block)


def _mark(path: str, block: json_codec.Object) -> Iterator[tuple[str, str]]:
    control = block.get("cache_control")
    if control:
        yield path, control.get("ttl") or "5m"
