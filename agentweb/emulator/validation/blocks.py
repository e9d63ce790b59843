"""The shapes of content blocks."""

from __future__ import annotations

from collections.abc import Mapping

from agentweb.emulator.json_codec import Value
from agentweb.emulator.validation.input_blocks import (
    cache_control,
    document,
    identifier,
    image,
    search_result,
    text_block,
    tool_reference,
)
from agentweb.emulator.validation.schema import (
    Check,
    Misfit,
    boolean,
    either,
    listing,
    mapping,
    matching,
    nullable,
    one_of,
    record,
    string,
    tagged,
)
from agentweb.emulator.validation.server_results import SERVER_RESULTS, SERVER_TOOLS

_result_part = tagged(
    {
        "text": text_block,
        "image": image,
        "search_result": search_result,
        "document": document,
        "tool_reference": tool_reference,
        "browser_state": record({"type": one_of("browser_state")}, open=True),
    }
)
_tool_use = record(
    {
        "type": one_of("tool_use"),
        "id": identifier,
        "name": matching("^[a-zA-Z0-9_-]{1,200}$"),
        "input": mapping,
    },
    {"cache_control": cache_control, "caller": mapping, "toolset_name": nullable(string)},
)
_tool_result = record(
    {"type": one_of("tool_result"), "tool_use_id": identifier},
    {
        "content": nullable(either(string, listing(_result_part))),
        "is_error": nullable(boolean),
        "cache_control": cache_control,
        "toolset_name": nullable(string),
    },
)


def _thinking(value: Value) -> None:
    if type(value) is dict and type(value.get("thinking")) is not str:
        raise Misfit("each thinking block must contain thinking")
    _thinking_fields(value)


_thinking_fields = record({"type": one_of("thinking"), "thinking": string, "signature": string})


def _compaction(value: Value) -> None:
    _compaction_fields(value)
    if value.get("content") == "":
        raise Misfit("compaction content must be non-empty or null", "content")


_compaction_fields = record(
    {"type": one_of("compaction")},
    {
        "content": nullable(string),
        "encrypted_content": nullable(string),
        "signature": nullable(string),
        "tool_changes": nullable(listing(mapping)),
        "cache_control": cache_control,
    },
)


_server_tool_use = record(
    {
        "type": one_of("server_tool_use"),
        "id": identifier,
        "name": one_of(*SERVER_TOOLS),
        "input": mapping,
    },
    {"cache_control": cache_control, "caller": mapping},
)
_mcp_tool_use = record(
    {
        "type": one_of("mcp_tool_use"),
        "id": identifier,
        "name": string,
        "input": mapping,
        "server_name": string,
    },
    {"cache_control": cache_control},
)

_tool_named = tagged(
    {
        "tool_reference": record({"type": one_of("tool_reference"), "name": string}),
        "mcp_tool_reference": record({"type": one_of("mcp_tool_reference")}, open=True),
        "mcp_toolset_reference": record({"type": one_of("mcp_toolset_reference")}, open=True),
        "tool_definition": record({"type": one_of("tool_definition"), "definition": mapping}),
    }
)


def _tool_change(kind: str) -> Check:
    return record({"type": one_of(kind), "tool": _tool_named}, {"cache_control": cache_control})


_hop = record({"model": string})
#: The boundary where one model declined and another continued; not shown to the model.
_fallback = record(
    {"type": one_of("fallback"), "from": _hop, "to": _hop}, {"trigger": nullable(mapping)}
)

BLOCKS: Mapping[str, Check] = {
    "text": text_block,
    "image": image,
    "document": document,
    "search_result": search_result,
    "thinking": _thinking,
    "redacted_thinking": record({"type": one_of("redacted_thinking"), "data": string}),
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "server_tool_use": _server_tool_use,
    **SERVER_RESULTS,
    "mcp_tool_use": _mcp_tool_use,
    "container_upload": record(
        {"type": one_of("container_upload"), "file_id": string}, {"cache_control": cache_control}
    ),
    "compaction": _compaction,
    "tool_addition": _tool_change("tool_addition"),
    "tool_removal": _tool_change("tool_removal"),
    "mcp_tool_listing": record(
        {
            "type": one_of("mcp_tool_listing"),
            "mcp_server_name": string,
            "tools": listing(mapping),
        }
    ),
    "fallback": _fallback,
}

block = tagged(BLOCKS)
