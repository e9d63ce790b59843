"""The shape of every content block a message may hold."""

from __future__ import annotations

from collections.abc import Mapping

from agentweb.emulator.validation.spec import (
    Check,
    Misfit,
    anything,
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
from agentweb.emulator.wire import Value

cache_control = nullable(
    record({"type": one_of("ephemeral")}, {"ttl": nullable(one_of("5m", "1h"))})
)

_identifier = matching("^[a-zA-Z0-9_-]+$")
_citation_switch = nullable(record({}, {"enabled": boolean}))
_text_fields = record(
    {"type": one_of("text"), "text": string},
    {"cache_control": cache_control, "citations": nullable(listing(mapping))},
)


def text_block(value: Value) -> None:
    _text_fields(value)
    if value.get("cache_control") and not value["text"]:
        raise Misfit("cache_control cannot be set for empty text blocks")


_image = record(
    {
        "type": one_of("image"),
        "source": tagged(
            {
                "base64": record(
                    {
                        "type": one_of("base64"),
                        "media_type": one_of("image/jpeg", "image/png", "image/gif", "image/webp"),
                        "data": string,
                    }
                ),
                "url": record({"type": one_of("url"), "url": string}),
                "file": record({"type": one_of("file"), "file_id": string}),
            }
        ),
    },
    {"cache_control": cache_control, "transformations": nullable(mapping)},
)

_source_content = tagged({"text": text_block, "image": _image})
_document = record(
    {
        "type": one_of("document"),
        "source": tagged(
            {
                "base64": record(
                    {
                        "type": one_of("base64"),
                        "media_type": one_of("application/pdf"),
                        "data": string,
                    }
                ),
                "text": record(
                    {"type": one_of("text"), "media_type": one_of("text/plain"), "data": string}
                ),
                "content": record(
                    {"type": one_of("content"), "content": either(string, listing(_source_content))}
                ),
                "url": record({"type": one_of("url"), "url": string}),
                "file": record({"type": one_of("file"), "file_id": string}),
            }
        ),
    },
    {
        "cache_control": cache_control,
        "citations": _citation_switch,
        "context": nullable(string),
        "title": nullable(string),
    },
)
_search_result = record(
    {
        "type": one_of("search_result"),
        "content": listing(tagged({"text": text_block})),
        "source": string,
        "title": string,
    },
    {"cache_control": cache_control, "citations": _citation_switch},
)
_tool_reference = record(
    {"type": one_of("tool_reference"), "tool_name": string}, {"cache_control": cache_control}
)
_result_part = tagged(
    {
        "text": text_block,
        "image": _image,
        "search_result": _search_result,
        "document": _document,
        "tool_reference": _tool_reference,
        "browser_state": record({"type": one_of("browser_state")}, open=True),
    }
)
_tool_use = record(
    {
        "type": one_of("tool_use"),
        "id": _identifier,
        "name": matching("^[a-zA-Z0-9_-]{1,200}$"),
        "input": mapping,
    },
    {"cache_control": cache_control, "caller": mapping, "toolset_name": nullable(string)},
)
_tool_result = record(
    {"type": one_of("tool_result"), "tool_use_id": _identifier},
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


def _server_result(name: str) -> Check:
    return record(
        {"type": one_of(name), "tool_use_id": _identifier, "content": anything},
        {"cache_control": cache_control, "caller": mapping, "is_error": boolean},
    )


_SERVER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_result",
)
_server_tool_use = record(
    {"type": one_of("server_tool_use"), "id": _identifier, "name": string, "input": mapping},
    {"cache_control": cache_control, "caller": mapping},
)
_mcp_tool_use = record(
    {
        "type": one_of("mcp_tool_use"),
        "id": _identifier,
        "name": string,
        "input": mapping,
        "server_name": string,
    },
    {"cache_control": cache_control},
)

BLOCKS: Mapping[str, Check] = {
    "text": text_block,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "thinking": _thinking,
    "redacted_thinking": record({"type": one_of("redacted_thinking"), "data": string}),
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "server_tool_use": _server_tool_use,
    **{name: _server_result(name) for name in _SERVER_RESULTS},
    "mcp_tool_use": _mcp_tool_use,
    "container_upload": record(
        {"type": one_of("container_upload"), "file_id": string}, {"cache_control": cache_control}
    ),
    "compaction": _compaction,
    "tool_addition": record({"type": one_of("tool_addition")}, open=True),
    "tool_removal": record({"type": one_of("tool_removal")}, open=True),
    "mcp_tool_listing": record({"type": one_of("mcp_tool_listing")}, open=True),
    "fallback": record({"type": one_of("fallback")}, open=True),
}

block = tagged(BLOCKS)
message = record(
    {"role": one_of("user", "assistant", "system"), "content": either(string, listing(block))},
    {"output_config": mapping, "clear_at": string},
)
