"""Content blocks for people: a label, an icon, a line, and the text up to a limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from conversations.context.steps.kinds import KINDS, OURS
from conversations.context.steps.meter_parts import find_part
from conversations.context.steps.removed_lists import has_only_lists
from conversations.context.view.blocks import SERVER_CALLS, is_server_result
from conversations.context.view.view import Block, Kind
from conversations.reductions.reduction_page import format_block_text
from conversations.rendering.numbers import write_number
from conversations.toolbox.tool_labels import name_tool

#: Characters of a block's summary line; of a text shown in full (the page says how much is cut).
BRIEF, SHOWN = 140, 60_000


def map_tool_names(blocks: Iterable[Block]) -> dict[str, str]:
    """Map the ids of tool calls to tool names."""
    return {
        block.id: str(block.value.get("name", "")) for block in blocks if block.type == "tool_use"
    }


def label_block(kind: Kind, block: Block, names: Mapping[str, str]) -> str:
    """Return what a block is, in a few words."""
    if block.by in OURS or block.type == "compaction":
        return _label_own(block)
    match block.type:
        case "text":
            return _("Answer") if kind == "answer" else _("Message")
        case "thinking" | "redacted_thinking":
            return _("Thinking")
        case "tool_use":
            return _("Tool call: %(tool)s") % {"tool": _name_called(block)}
        case "tool_result":
            name = names.get(block.id, "")
            words = _("Error: %(tool)s") if block.is_error else _("Result: %(tool)s")
            return words % {"tool": name_tool(name) if name else _("a tool")}
        case "image":
            return _("Image")
        case "document":
            return _("Document")
        case name if name in SERVER_CALLS:
            return _("Tool call by the API: %(tool)s") % {"tool": _name_called(block)}
        case name if is_server_result(name):
            return _("Result of a tool of the API")
        case name:
            return name


def _name_called(block: Block) -> str:
    return str(name_tool(str(block.value.get("name", ""))))


def _label_own(block: Block) -> str:
    if block.type == "compaction":
        return _("Compaction by the API")
    if has_only_lists(str(block.value.get("text", ""))):
        return _("List for recall")
    return _(KINDS[block.by].block)


def choose_icon(kind: Kind, block: Block) -> str:
    """Return the name of a block's icon."""
    icons = {
        "summary": "archive", "thinking": "thought", "results": "tools", "attachments": "file",
        "answers": "send", "prompts": "pen",
    }  # fmt: skip
    return "tool" if block.type == "tool_use" else icons[find_part(kind, block)]


def shorten_block(block: Block) -> str:
    """Return the beginning of a block on one line."""
    line = " ".join(format_block(block)[: 4 * BRIEF].split())
    return line if len(line) <= BRIEF else line[: BRIEF - 1] + "…"


def format_block(block: Block) -> str:
    """Return a block as text; binary and encrypted data is replaced by its length."""
    value = block.value
    if block.type in ("image", "document", "container_upload", "search_result"):
        return _describe_attachment(value)
    if block.type == "redacted_thinking":
        return _("Encrypted by the API, %(n)s characters") % {"n": write_number(len(block.text))}
    if block.type in SERVER_CALLS or is_server_result(block.type):
        return json.dumps(value, ensure_ascii=False, indent=2)
    if block.type == "thinking" and not value.get("thinking"):
        return _("Not shown by the API; its signature has %(n)s characters") % {
            "n": write_number(len(str(value.get("signature", ""))))
        }
    return format_block_text(value)


def cut_text(text: str, most: int = SHOWN) -> tuple[str, int]:
    """Return the text up to a length, and how many characters were cut."""
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)


def _describe_attachment(value: Mapping[str, Any]) -> str:
    """Describe an attachment; a text document is returned as its text."""
    source = value.get("source")
    held = source if isinstance(source, dict) else {}
    data = str(held.get("data") or held.get("url") or held.get("file_id") or "")
    title = str(value.get("title") or "")
    if held.get("type") == "text":
        return "\n".join(filter(None, [title, data]))
    about = [title, str(held.get("media_type") or held.get("type") or value.get("type"))]
    if held.get("type") == "base64":
        about.append(_("%(n)s bytes") % {"n": write_number(len(data) * 3 // 4)})
    elif data:
        about.append(data)
    return " · ".join(filter(None, about))
