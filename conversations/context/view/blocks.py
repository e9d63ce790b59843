"""Which content blocks the API accepts, one by one: the rules that need no other message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from conversations.context.tokens.images import TYPES
from conversations.context.tokens.media import find_source_flaw
from conversations.context.view.block_fields import find_extra_field

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
#: A reference to a stored file (`attachment_refs.py`) that was not replaced by the file.
_NAMED_FILE = re.compile(r"blob:sha256:[0-9a-f]{64}")
#: Calls of tools that the API runs itself (`view/server_calls.py`).
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_USER = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
_USER_ONLY = _USER - {"text"}
_NESTED = frozenset({"text", "image", "document", "search_result"})
_UNMARKED = frozenset({"thinking", "redacted_thinking"})

Flaw = tuple[str, str, str]


def is_server_result(name: str) -> bool:
    return name.endswith("_tool_result")


def find_flaw(role: str, values: Any) -> Flaw | None:
    """Return the first rule that a message's blocks break by themselves; None if they break none.

    Blocks after a flaw are not checked, so a rule may rely on earlier rules.
    """
    if not isinstance(values, list):
        return "content", "content", "is not an array of blocks"
    return next(_find_flaws(role, values), None)


def count_breakpoints(value: dict[str, Any]) -> int:
    """Count the cache_control marks on a block and the blocks in it."""
    count = int(bool(value.get("cache_control")))
    content = value.get("content")
    if isinstance(content, list):
        count += sum(int(bool(nested.get("cache_control"))) for nested in content)
    return count


def _find_flaws(role: str, values: list[Any]) -> Iterator[Flaw]:
    for at, value in enumerate(values):
        where = f"content.{at}"
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            yield "content", where, "is not an object with a type"
        elif not _suits(role, value["type"]):
            yield "kind", where, f"{value['type']} may not stand in a message of role {role}"
        else:
            yield from _find_own_flaws(role, where, value)


def _suits(role: str, name: str) -> bool:
    if role == "user":
        return name in _USER
    return name not in _USER_ONLY


def _find_own_flaws(role: str, where: str, value: dict[str, Any]) -> Iterator[Flaw]:
    name = value["type"]
    mark = value.get("cache_control")
    if mark is not None and (name in _UNMARKED or not _is_mark(mark)):
        yield "cache_control", where, f"no such mark on {name}"
    if extra := find_extra_field(role, value):
        yield "extra", f"{where}.{name}.{extra}", "extra inputs are not permitted"
    match name:
        case "text":
            yield from _check_text(role, where, value)
        case "thinking" if not (_is_str(value, "thinking") and _is_str(value, "signature")):
            yield "thinking", where, "each thinking block must contain thinking and its signature"
        case "redacted_thinking" if not _is_str(value, "data"):
            yield "thinking", where, "a redacted thinking block must contain its data"
        case "compaction" if value.get("content") is not None and not _is_filled(value["content"]):
            yield "compaction", where, "the content of a compaction block is a text or null"
        case "tool_use":
            yield from _check_use(where, value)
        case "tool_result":
            yield from _check_result(where, value)
        case "image" | "document":
            yield from _check_source(where, name, value.get("source"))
        case _ if name in SERVER_CALLS and not _matches(_ID, value.get("id")):
            yield "id", where, f"{name} has no proper id"
        case _ if is_server_result(name) and not _matches(_ID, value.get("tool_use_id")):
            yield "id", where, f"{name} has no proper tool_use_id"


def _check_text(role: str, where: str, value: dict[str, Any]) -> Iterator[Flaw]:
    text = value.get("text")
    if not isinstance(text, str) or not text:
        yield "text", where, "text content blocks must be non-empty"
    elif role == "user" and not text.strip():
        # The API puts whitespace between cited texts of its own answers, and accepts it back.
        yield "text", where, "text content blocks must contain non-whitespace text"


def _check_source(where: str, name: str, source: Any) -> Iterator[Flaw]:
    if not isinstance(source, dict):
        yield "source", where, f"{name} has no source"
    elif _matches(_NAMED_FILE, source.get("data")):
        yield "source", where, f"the file of this {name} is not stored any more"
    elif source.get("type") == "base64" and (flaw := find_source_flaw(name, source)):
        yield "source", where, f"the file of this {name} {flaw}"


def _check_use(where: str, value: dict[str, Any]) -> Iterator[Flaw]:
    if not _matches(_ID, value.get("id")):
        yield "id", where, "tool_use has no proper id"
    if not _matches(_NAME, value.get("name")):
        yield "name", where, "tool_use has no proper name"
    if not isinstance(value.get("input"), dict):
        yield "input", where, "the input of a tool_use must be an object"


def _check_result(where: str, value: dict[str, Any]) -> Iterator[Flaw]:
    if not _matches(_ID, value.get("tool_use_id")):
        yield "id", where, "tool_result has no proper tool_use_id"
    if not isinstance(value.get("is_error", False), bool):
        yield "is_error", where, "is_error must be true or false"
    content = value.get("content", "")
    if isinstance(content, list):
        yield from _check_nested(where, content)
        if value.get("is_error") is True and not all(map(_is_text, content)):
            yield "is_error", where, "the content of a result that is an error must be text"
    elif not isinstance(content, str):
        yield "content", where, "the content of a tool_result is a text or an array of blocks"


def _check_nested(where: str, content: list[Any]) -> Iterator[Flaw]:
    for at, nested in enumerate(content):
        inside = f"{where}.content.{at}"
        if not isinstance(nested, dict) or nested.get("type") not in _NESTED:
            yield "kind", inside, "may not stand in a tool_result"
        else:
            yield from _find_own_flaws("user", inside, nested)


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _is_mark(mark: object) -> bool:
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
        return False
    # A one-hour breakpoint must not follow five-minute ones, and the envelope may have such.
    return bool(mark.get("ttl", "5m") == "5m")


def _is_filled(text: object) -> bool:
    return isinstance(text, str) and text != ""


def _is_str(value: dict[str, Any], key: str) -> bool:
    return isinstance(value.get(key), str)


def _matches(pattern: re.Pattern[str], text: object) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def read_result_text(content: Any) -> str:
    """Return a tool_result's content as text for people."""
    if isinstance(content, str):
        return content
    return "\n".join(
        block.get("text", "") if block.get("type") == "text" else f"[{block.get('type')}]"
        for block in content
    )


def list_result_images(content: Any) -> list[str]:
    """Return a tool_result's images as data URLs, which our pages may show."""
    blocks = content if isinstance(content, list) else []
    sources = [block.get("source") for block in blocks if block.get("type") == "image"]
    return [
        f"data:{source['media_type']};base64,{source['data']}"
        for source in sources
        if isinstance(source, dict) and source.get("media_type") in TYPES and "data" in source
    ]
