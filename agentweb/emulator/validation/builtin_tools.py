"""Tools that the API defines: the parameters of each version.

Some run on the API's side (search, fetch, code), some are only described there and run by the
caller (memory, shell, text editor). Tools of older betas are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentweb.emulator.json_codec import Value
from agentweb.emulator.validation.input_blocks import cache_control
from agentweb.emulator.validation.schema import (
    Check,
    Misfit,
    boolean,
    integer,
    listing,
    mapping,
    nullable,
    one_of,
    record,
    string,
)

_ANY_TOOL: Mapping[str, Check] = {
    "allowed_callers": listing(
        one_of(
            "direct",
            "code_execution_20250825",
            "code_execution_20260120",
            "code_execution_20260521",
        )
    ),
    "cache_control": cache_control,
    "defer_loading": boolean,
    "strict": boolean,
}
_EXAMPLES: Mapping[str, Check] = {"input_examples": listing(mapping)}
_INCLUSION: Mapping[str, Check] = {"response_inclusion": one_of("full", "excluded")}
_DOMAINS: Mapping[str, Check] = {
    "allowed_domains": nullable(listing(string)),
    "blocked_domains": nullable(listing(string)),
    "max_uses": nullable(integer(1)),
}
_SEARCH: Mapping[str, Check] = {
    **_DOMAINS,
    "user_location": nullable(
        record(
            {"type": one_of("approximate")},
            {name: nullable(string) for name in ("city", "country", "region", "timezone")},
        )
    ),
}
_FETCH: Mapping[str, Check] = {
    **_DOMAINS,
    "citations": nullable(record({}, {"enabled": boolean})),
    "max_content_tokens": nullable(integer(1)),
    "url_sources": nullable(mapping),
}


def _tool(kind: str, name: str, *fields: Mapping[str, Check]) -> tuple[str, Check]:
    known: dict[str, Check] = dict(_ANY_TOOL)
    for more in fields:
        known |= more
    shape = record({"type": one_of(kind), "name": one_of(name)}, known)
    return kind, shape


def _one_side(shape: Check) -> Check:
    """Check that domains are either allowed or blocked, not both."""

    def check(value: Value) -> None:
        shape(value)
        if value.get("allowed_domains") is not None and value.get("blocked_domains") is not None:
            raise Misfit("`allowed_domains` cannot be used alongside `blocked_domains`")

    return check


def _open(kind: str) -> tuple[str, Check]:
    return kind, record({"type": one_of(kind)}, {"cache_control": cache_control}, open=True)


_USE_CACHE: Mapping[str, Check] = {"use_cache": boolean}
_LENGTH: Mapping[str, Check] = {"max_characters": nullable(integer(1))}
_EDITOR = "str_replace_based_edit_tool"
_ONE_SIDED = (
    _tool("web_search_20250305", "web_search", _SEARCH),
    _tool("web_search_20260209", "web_search", _SEARCH),
    _tool("web_search_20260318", "web_search", _SEARCH, _INCLUSION),
    _tool("web_fetch_20250910", "web_fetch", _FETCH),
    _tool("web_fetch_20260209", "web_fetch", _FETCH),
    _tool("web_fetch_20260309", "web_fetch", _FETCH, _USE_CACHE),
    _tool("web_fetch_20260318", "web_fetch", _FETCH, _USE_CACHE, _INCLUSION),
)

OWN_TOOLS: Mapping[str, Check] = {
    **{kind: _one_side(shape) for kind, shape in _ONE_SIDED},
    **dict(
        _tool(f"code_execution_{version}", "code_execution")
        for version in ("20250522", "20250825", "20260120", "20260521")
    ),
    **dict(
        _tool(f"tool_search_tool_{kind}{version}", f"tool_search_tool_{kind}")
        for kind in ("bm25", "regex")
        for version in ("", "_20251119")
    ),
    **dict(
        (
            _tool("memory_20250818", "memory", _EXAMPLES),
            _tool("bash_20250124", "bash", _EXAMPLES),
            _tool("text_editor_20250124", "str_replace_editor", _EXAMPLES),
            _tool("text_editor_20250429", _EDITOR, _EXAMPLES),
            _tool("text_editor_20250728", _EDITOR, _EXAMPLES, _LENGTH),
        )
    ),
    **dict(
        _open(kind)
        for kind in (
            "advisor_20260301",
            "bash_20241022",
            "browser_toolset_20260801",
            "computer_20241022",
            "computer_20250124",
            "computer_20251124",
            "computer_toolset_20260801",
            "mcp_toolset",
            "text_editor_20241022",
        )
    ),
}
