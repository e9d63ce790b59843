"""Rules of the messages: first role, no empty content, blocks by role, no prefill."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.model_catalogue import Model
from agentweb.emulator.validation.server_results import SERVER_RESULTS

_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with "
    "a user message."
)
_OF_ASSISTANT = frozenset(
    {
        "tool_use",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_tool_listing",
        "fallback",
        *SERVER_RESULTS,
    }
)
_OF_USER = frozenset({"tool_result"})
_OF_SYSTEM = frozenset({"tool_addition", "tool_removal"})
_EMPTY = "all messages must have non-empty content except for the optional final assistant message"


def check_messages(body: json_codec.Object) -> None:
    messages = body["messages"]
    if not messages:
        raise Invalid("messages: at least one message is required")
    last = len(messages) - 1
    for index, message in enumerate(messages):
        silent = message["role"] == "system" and message.get("output_config")
        if not (message["content"] or silent or (index == last and message["role"] == "assistant")):
            raise Invalid(f"messages.{index}: {_EMPTY}")
        _check_blocks(index, message)
    _check_system_text(body.get("system"))


def check_end(body: json_codec.Object, model: Model) -> None:
    """Refuse a prefilled assistant message for newer models."""
    final = body["messages"][-1]
    if final["role"] != "assistant":
        return
    content = as_blocks(final["content"])
    server_work = content and content[-1]["type"].endswith("_tool_result")
    if content and (server_work or content[-1]["type"] == "compaction" or _paused(content)):
        return
    if not model.prefill:
        raise Invalid(_PREFILL)
    if (
        content
        and content[-1]["type"] == "text"
        and content[-1]["text"] != content[-1]["text"].rstrip()
    ):
        raise Invalid("messages: final assistant content cannot end with trailing whitespace")


def _paused(content: list[json_codec.Object]) -> bool:
    """Return whether a message has server tool calls: a paused turn, sent back unchanged."""
    return any(b["type"] == "server_tool_use" or b["type"] in SERVER_RESULTS for b in content)


def _check_blocks(index: int, message: json_codec.Object) -> None:
    role = message["role"]
    for at, block in enumerate(as_blocks(message["content"])):
        kind = block["type"]
        if kind == "text":
            _check_text_of(message, block["text"])
        elif kind == "tool_result" and role == "user":
            _check_result(f"messages.{index}.content.{at}", block)
        elif role != "assistant" and kind in _OF_ASSISTANT:
            raise Invalid(f"messages.{index}: `{kind}` blocks can only be in `assistant` messages")
        elif role != "user" and kind in _OF_USER:
            raise Invalid(f"messages.{index}: `{kind}` blocks can only be in `user` messages")
        elif role != "system" and kind in _OF_SYSTEM:
            raise Invalid(f"messages.{index}: `{kind}` blocks can only be in `system` messages")
        elif role == "system" and kind not in _OF_SYSTEM | {"compaction"}:
            raise Invalid(f"messages.{index}.content.{at}: `system` messages can only contain text")


def _check_result(path: str, block: json_codec.Object) -> None:
    """Check that a result has no empty text, and that of a failed call nothing but text."""
    content = block.get("content")
    parts = content if isinstance(content, list) else []
    if any(part.get("type") == "text" and not part["text"] for part in parts):
        raise Invalid("messages: text content blocks must be non-empty")
    if block.get("is_error") is True and any(part.get("type") != "text" for part in parts):
        raise Invalid(f"{path}.tool_result: all content must be type `text` if `is_error` is true")


def _check_text_of(message: json_codec.Object, text: str) -> None:
    if message["role"] == "assistant" and text.isspace():
        # The API itself separates cited texts by whitespace.
        return
    check_text(text, "messages", final_empty=not message["content"])


def check_text(text: str, where: str, *, final_empty: bool = False) -> None:
    if not text and not final_empty:
        raise Invalid(f"{where}: text content blocks must be non-empty")
    if text and text.isspace():
        raise Invalid(f"{where}: text content blocks must contain non-whitespace text")


def _check_system_text(system: json_codec.Value) -> None:
    if isinstance(system, list):
        for block in system:
            check_text(block["text"], "system")
