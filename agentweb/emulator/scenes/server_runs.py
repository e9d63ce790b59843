"""Tools as they run on the API's side: what each gives for an input.

Nothing but the input and the request decides, so a call that an earlier answer left open gives
what it would have given there. An input that says `fails` gives the error of its tool.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.scene import Raw
from agentweb.emulator.scenes.view import Request, blocks

_WORDS = re.compile(r"\b(\d+) words each\b", re.IGNORECASE)
_FEWEST_WORDS = 12


def run_server_tool(
    request: Request, name: str, given: json_codec.Object, number: int
) -> json_codec.Value:
    """The content of the result; `number` counts the calls of this tool in the turn."""
    tool = request.server_tool(name) or {}
    if "fails" in json_codec.encode(given).decode(errors="replace"):
        return {"type": f"{name}_tool_result_error", "error_code": "unavailable"}
    if number >= (tool.get("max_uses") or number + 1):
        return {"type": f"{name}_tool_result_error", "error_code": "max_uses_exceeded"}
    return _RUNS[name](request, tool, given)


def run_open_calls(request: Request) -> tuple[Raw, ...]:
    """Results of the calls of the running turn that have none."""
    made: dict[str, int] = {}
    results = []
    done = {block.get("tool_use_id") for block in turn_blocks(request)}
    for block in turn_blocks(request):
        if block["type"] != "server_tool_use":
            continue
        name = block["name"]
        number = made[name] = made.get(name, -1) + 1
        if block["id"] not in done and name in _RUNS:
            content = run_server_tool(request, name, block["input"], number)
            kind = f"{name}_tool_result"
            results.append(Raw({"type": kind, "tool_use_id": block["id"], "content": content}))
    return tuple(results)


def turn_blocks(request: Request) -> Iterator[json_codec.Object]:
    """What stands behind the latest words of the user."""
    for message in request.messages[request.prompt_at + 1 :]:
        yield from blocks(message)


def _search(
    request: Request, tool: json_codec.Object, given: json_codec.Object
) -> json_codec.Value:
    words = _WORDS.search(request.prompt)
    return [found_page(tool, str(given.get("query")), int(words[1]) if words else _FEWEST_WORDS)]


def found_page(
    tool: json_codec.Object, query: str, words: int = _FEWEST_WORDS
) -> json_codec.Object:
    """A page of an invented web, on the domains the request allows."""
    blocked = tool.get("blocked_domains") or ()
    hosts = tool.get("allowed_domains") or [
        host for host in ("pages.example", "library.example") if host not in blocked
    ]
    slug = re.sub(r"\W+", "-", query.lower()).strip("-")
    return {
        "type": "web_search_result",
        "url": f"https://{hosts[0] if hosts else 'elsewhere.example'}/{slug}",
        "title": f"All about {query}",
        "encrypted_content": sealed(f"Everything about {query}. ", words),
        "page_age": None,
    }


def sealed(text: str, words: int) -> str:
    """Text nobody but the API is to read, about as long as so many words."""
    return base64.b64encode((text * (1 + words // 3)).encode()[: words * 6]).decode()


_Run = Callable[[Request, json_codec.Object, json_codec.Object], json_codec.Value]
_RUNS: Mapping[str, _Run] = {"web_search": _search}
