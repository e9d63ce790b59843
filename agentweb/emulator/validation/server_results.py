"""The shapes of results of server tools in the assistant's message."""

from __future__ import annotations

from collections.abc import Mapping

from agentweb.emulator.json_codec import Value
from agentweb.emulator.validation.input_blocks import (
    cache_control,
    document,
    identifier,
    tool_reference,
)
from agentweb.emulator.validation.schema import (
    Check,
    anything,
    boolean,
    integer,
    listing,
    mapping,
    nullable,
    one_of,
    record,
    string,
    tagged,
)

SERVER_TOOLS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
)


def _error(tool: str) -> tuple[str, Check]:
    kind = f"{tool}_result_error"
    fields = {"type": one_of(kind), "error_code": string}
    return kind, record(fields, {"error_message": nullable(string)})


def _ran(kind: str, output: str, stdout: str = "stdout") -> tuple[str, Check]:
    made = record({"type": one_of(output), "file_id": string})
    return kind, record(
        {
            "type": one_of(kind),
            "content": listing(made),
            "return_code": integer(),
            "stderr": string,
            stdout: string,
        }
    )


_hit = record(
    {"type": one_of("web_search_result"), "encrypted_content": string, "title": string}
    | {"url": string},
    {"page_age": nullable(string)},
)
_hits = listing(tagged({"web_search_result": _hit}))
_no_hits = tagged(dict([_error("web_search_tool")]))


def _searched(value: Value) -> None:
    """Check a list of pages, or one error."""
    if isinstance(value, list):
        _hits(value)
    else:
        _no_hits(value)


_page = record(
    {"type": one_of("web_fetch_result"), "url": string, "content": tagged({"document": document})},
    {"retrieved_at": nullable(string)},
)
_tools_found = record(
    {"type": one_of("tool_search_tool_search_result"), "tool_references": listing(tool_reference)}
)
_code = [
    _ran("code_execution_result", "code_execution_output"),
    _ran("encrypted_code_execution_result", "code_execution_output", "encrypted_stdout"),
    _error("code_execution_tool"),
]
_shell = [
    _ran("bash_code_execution_result", "bash_code_execution_output"),
    _error("bash_code_execution_tool"),
]

_CONTENTS: Mapping[str, Check] = {
    "web_search": _searched,
    "web_fetch": tagged(dict([("web_fetch_result", _page), _error("web_fetch_tool")])),
    "code_execution": tagged(dict(_code)),
    "bash_code_execution": tagged(dict(_shell)),
    "text_editor_code_execution": mapping,
    "tool_search": tagged(
        dict([("tool_search_tool_search_result", _tools_found), _error("tool_search_tool")])
    ),
    "advisor": mapping,
    "mcp": anything,
}


def _result(name: str, content: Check) -> tuple[str, Check]:
    kind = f"{name}_tool_result"
    needed: dict[str, Check] = {"type": one_of(kind), "tool_use_id": identifier}
    more: dict[str, Check] = {"cache_control": cache_control, "caller": mapping}
    more["is_error"] = boolean
    # A server of the caller may return no content.
    (more if name == "mcp" else needed)["content"] = content
    return kind, record(needed, more)


SERVER_RESULTS: Mapping[str, Check] = dict(_result(*item) for item in _CONTENTS.items())
