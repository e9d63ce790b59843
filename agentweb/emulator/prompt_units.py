"""A request as a line of units, for cache and bill: tools, system blocks, message blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentweb.emulator import json_codec, tokens
from agentweb.emulator.canonical_blocks import as_blocks, essence, tool_essence
from agentweb.emulator.ids import digest
from agentweb.emulator.model_catalogue import Tokenizer
from agentweb.emulator.signatures import Seal

Level = Literal["tools", "system", "messages"]
Lifetime = Literal["5m", "1h"]

_MEMO_LIMIT = 100_000
#: The field with the text of a page found, and its hundredths of a token per character: the most
#: of 12 recorded answers with searches (19 to 36).
_SEALED, _SEALED_WEIGHT = "encrypted_content", 36


@dataclass(frozen=True, slots=True)
class Unit:
    level: Level
    key: bytes
    tokens: int
    #: The lifetime of a cache breakpoint on this unit.
    mark: Lifetime | None


class TokenCounter:
    """Counts the tokens of units, with a cache."""

    def __init__(self) -> None:
        self._memo: dict[tuple[Tokenizer, bytes], int] = {}

    def count_units(self, body: json_codec.Object, tokenizer: Tokenizer) -> list[Unit]:
        """Return every unit of a validated request, in the order in which the model reads them."""
        line = [self._unit("tools", b"", tool, tokenizer) for tool in body.get("tools") or ()]
        line += [
            self._unit("system", b"", block, tokenizer)
            for block in as_blocks(body.get("system") or [])
        ]
        for message in body["messages"]:
            role = message["role"].encode()
            line += [
                self._unit("messages", role, block, tokenizer)
                for block in as_blocks(message["content"])
            ]
        return line

    def _unit(
        self, level: Level, role: bytes, block: json_codec.Object, tokenizer: Tokenizer
    ) -> Unit:
        plain = tool_essence(block) if level == "tools" else essence(block)
        key = digest(level.encode(), role, plain)
        count = self._memo.get((tokenizer, key))
        if count is None:
            if len(self._memo) > _MEMO_LIMIT:
                self._memo.clear()
            count = tokens.BLOCK_TOKENS + (
                tokens.count_text(plain.decode(), tokenizer)
                if level == "tools"
                else count_block(block, tokenizer)
            )
            self._memo[tokenizer, key] = count
        return Unit(level, key, count, _mark(block))


def total_tokens(line: list[Unit]) -> int:
    tools = tokens.TOOLS_TOKENS if any(unit.level == "tools" for unit in line) else 0
    return tokens.REQUEST_TOKENS + tools + sum(unit.tokens for unit in line)


def count_block(block: json_codec.Object, tokenizer: Tokenizer) -> int:
    """Return the tokens of one content block."""
    match block.get("type"):
        case "text":
            return tokens.count_text(block["text"], tokenizer)
        case "image":
            return tokens.count_image(block["source"])
        case "document":
            return _count_document(block, tokenizer)
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            text = block["name"] + json_codec.encode(block["input"]).decode(errors="replace")
            return tokens.count_text(text, tokenizer) + 9
        case "tool_result" | "search_result":
            parts = as_blocks(block.get("content") or [])
            return 9 + sum(count_block(part, tokenizer) for part in parts)
        case str(kind) if kind.endswith("_tool_result"):
            return 9 + _count_server_result(block.get("content"), tokenizer)
        case "thinking" | "redacted_thinking":
            seal = Seal.decode(block.get("signature") or block.get("data") or "")
            return seal.tokens if seal else tokens.count_text(block.get("thinking", ""), tokenizer)
        case "compaction":
            return tokens.count_text(block.get("content") or "", tokenizer)
        case _:
            return tokens.count_text(json_codec.encode(block).decode(errors="replace"), tokenizer)


def _count_server_result(content: json_codec.Value, tokenizer: Tokenizer) -> int:
    """Count the result of a tool on the API's side, without its id and its marks."""
    if isinstance(content, dict) and content.get("type") == "web_fetch_result":
        address = tokens.count_text(str(content["url"]), tokenizer)
        return address + _count_document(content["content"], tokenizer)
    rows = content if isinstance(content, list) else [content or {}]
    shown = [{name: row[name] for name in row if name != _SEALED} for row in rows]
    sealed = sum(len(str(row.get(_SEALED) or "")) for row in rows)
    text = json_codec.encode(shown).decode(errors="replace")
    return tokens.count_text(text, tokenizer) + sealed * _SEALED_WEIGHT // 100


def _count_document(block: json_codec.Object, tokenizer: Tokenizer) -> int:
    source = block["source"]
    title = tokens.count_text(f"{block.get('title') or ''}{block.get('context') or ''}", tokenizer)
    match source.get("type"):
        case "text":
            return title + tokens.count_text(source["data"], tokenizer)
        case "content":
            parts = as_blocks(source["content"])
            return title + sum(count_block(part, tokenizer) for part in parts)
        case _:
            return title + tokens.count_pdf(source)


def _mark(block: json_codec.Object) -> Lifetime | None:
    control = block.get("cache_control")
    if control:
        return control.get("ttl") or "5m"
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        marks = [mark for part in block["content"] if (mark := _mark(part))]
        return marks[-1] if marks else None
    return None
