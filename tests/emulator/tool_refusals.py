"""Tools that run on the API's side: refused definitions and histories."""

from __future__ import annotations

from typing import Any

from tests.emulator.samples import (
    EXTRA,
    MARK,
    SEARCH,
    SERVER_RESULT,
    SERVER_USE,
    TEXT,
    assistant,
    talk,
    user,
    words,
)

ALLOWED = {"allowed_domains": ["a.example"]}
WEB_CITATION = {
    "type": "web_search_result_location",
    "cited_text": "a",
    "encrypted_index": "a",
    "title": None,
    "url": "https://a.example",
}


def found(content: Any) -> dict[str, Any]:
    """Return a search in the history with these results."""
    return talk(user(TEXT), assistant(SERVER_USE, SERVER_RESULT | {"content": content}), user(TEXT))


#: section and rule, changes to the fields of a valid request, beginning of the error text.
TOOL_RULES = [
    (
        "5 sites allowed and blocked",
        words(tools=[SEARCH | ALLOWED | {"blocked_domains": ["b.example"]}]),
        "tools.0.web_search_20260318: `allowed_domains` cannot be used alongside",
    ),
    (
        "5 search by another name",
        words(tools=[SEARCH | {"name": "look_up"}]),
        "tools.0.web_search_20260318.name: Input should be 'web_search'",
    ),
    (
        "5 search without a name",
        words(tools=[{"type": "web_search_20260318"}]),
        "tools.0.web_search_20260318.name: Field required",
    ),
    (
        "5 search of an unknown version",
        words(tools=[SEARCH | {"type": "web_search_20290101"}]),
        "tools.0: Input tag 'web_search_20290101' found using 'type'",
    ),
    (
        "5 search with a field of another tool",
        words(tools=[SEARCH | {"max_characters": 9}]),
        f"tools.0.web_search_20260318.max_characters: {EXTRA}",
    ),
    (
        "5 search without a use",
        words(tools=[SEARCH | {"max_uses": 0}]),
        "tools.0.web_search_20260318.max_uses: Input should be greater than or equal to 1",
    ),
    (
        "5 sites that are no list",
        words(tools=[SEARCH | {"allowed_domains": "a.example"}]),
        "tools.0.web_search_20260318.allowed_domains: Input should be a valid list",
    ),
    (
        "5 place of an unknown kind",
        words(tools=[SEARCH | {"user_location": {"type": "exact"}}]),
        "tools.0.web_search_20260318.user_location.type: Input should be 'approximate'",
    ),
    (
        "5 fetching from sites allowed and blocked",
        words(
            tools=[
                {"type": "web_fetch_20260318", "name": "web_fetch", "blocked_domains": []} | ALLOWED
            ]
        ),
        "tools.0.web_fetch_20260318: `allowed_domains` cannot be used alongside",
    ),
    (
        "8 memory by another name",
        words(tools=[{"type": "memory_20250818", "name": "notes"}]),
        "tools.0.memory_20250818.name: Input should be 'memory'",
    ),
    (
        "5 code with a schema",
        words(
            tools=[
                {"type": "code_execution_20260521", "name": "code_execution", "input_schema": {}}
            ]
        ),
        f"tools.0.code_execution_20260521.input_schema: {EXTRA}",
    ),
    (
        "5 code with a name of its own twice",
        words(
            tools=[
                {"type": "code_execution_20260521", "name": "code_execution"},
                {"type": "code_execution_20260120", "name": "code_execution"},
            ]
        ),
        "tools: Tool names must be unique.",
    ),
    (
        "5 container that is a number",
        words(container=7),
        "container: Input should be a valid dictionary",
    ),
    (
        "5 server tool without result",
        talk(user(TEXT), assistant(SERVER_USE), user(TEXT)),
        (
            "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a "
            "corresponding `web_search_tool_result` block"
        ),
    ),
    (
        "5 one of two server tools without result",
        talk(
            user(TEXT), assistant(SERVER_USE, SERVER_USE | {"id": "s2"}, SERVER_RESULT), user(TEXT)
        ),
        "messages.1: `web_search` tool use with id `s2` was found without a corresponding",
    ),
    (
        "5 tool search without result",
        talk(user(TEXT), assistant(SERVER_USE | {"name": "tool_search_tool_bm25"}), user(TEXT)),
        (
            "messages.1: `tool_search_tool_bm25` tool use with id `srvtoolu_1` was found without a "
            "corresponding `tool_search_tool_result` block"
        ),
    ),
    (
        "5 server result without its use",
        talk(user(TEXT), assistant(SERVER_RESULT, TEXT), user(TEXT)),
        (
            "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` "
            "blocks: srvtoolu_1."
        ),
    ),
    (
        "5 server result before its use",
        talk(user(TEXT), assistant(SERVER_RESULT, SERVER_USE), user(TEXT)),
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result`",
    ),
    (
        "5 server result twice",
        talk(user(TEXT), assistant(SERVER_USE, SERVER_RESULT, SERVER_RESULT), user(TEXT)),
        "messages.1.content.2: unexpected `tool_use_id` found in `web_search_tool_result`",
    ),
    (
        "5 server result by the user",
        talk(user(TEXT), assistant(SERVER_USE), user(SERVER_RESULT, TEXT)),
        "messages.2: `web_search_tool_result` blocks can only be in `assistant` messages",
    ),
    (
        "5 server tool by the user",
        talk(user(SERVER_USE)),
        "messages.0: `server_tool_use` blocks can only be in `assistant` messages",
    ),
    (
        "5 server tool ids are unique",
        talk(user(TEXT), assistant(SERVER_USE, SERVER_USE, SERVER_RESULT), user(TEXT)),
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    (
        "5 unknown server tool",
        talk(user(TEXT), assistant(SERVER_USE | {"name": "oracle"}), user(TEXT)),
        "messages.1.content.0.server_tool_use.name: Input should be 'web_search', 'web_fetch'",
    ),
    (
        "5 page without its address",
        found([{"type": "web_search_result", "title": "A", "encrypted_content": "eA=="}]),
        (
            "messages.1.content.1.web_search_tool_result.content.0.web_search_result.url: "
            "Field required"
        ),
    ),
    (
        "5 page of an unknown kind",
        found([{"type": "rumour"}]),
        "messages.1.content.1.web_search_tool_result.content.0: Input tag 'rumour' found",
    ),
    (
        "5 error without its code",
        found({"type": "web_search_tool_result_error"}),
        (
            "messages.1.content.1.web_search_tool_result.content.web_search_tool_result_error."
            "error_code: Field required"
        ),
    ),
    (
        "5 citation of an unknown kind",
        talk(user(TEXT), assistant(TEXT | {"citations": [{"type": "hearsay"}]}), user(TEXT)),
        "messages.1.content.0.text.citations.0: Input tag 'hearsay' found using 'type'",
    ),
    (
        "7 no mark on a citation",
        talk(user(TEXT), assistant(TEXT | {"citations": [WEB_CITATION | MARK]}), user(TEXT)),
        f"messages.1.content.0.text.citations.0.web_search_result_location.cache_control: {EXTRA}",
    ),
]
