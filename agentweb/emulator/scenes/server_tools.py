"""Scenes of server tools: searches of an invented web, fetched pages, and code that only prints.

`search the web for tea`, `search the web 14 times for tea`, `search the web 3 times, 900 words
each, for tea`; `run code: print('hello')`, `run code: echo hello > a.txt`; `fetch https://...`. In
its tenth round the server pauses the turn: the call of that round has no result yet. When it is
sent back unchanged, the answer begins with that result and continues. The pages found are on the
domains that the request allows.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.citations import cite_document, sources_in
from agentweb.emulator.scenes.scene import Block, Reply, ServerUse, Text
from agentweb.emulator.scenes.server_runs import run_server_tool, turn_blocks
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.scenes.web_pages import cite_page, found_page

#: Most rounds that the server makes in one request.
ROUNDS = 10
_SEARCH = re.compile(
    r"\bsearch the web(?: (\d+) times?)?(?:, \d+ words each,)? for ([^\n.?!,]+)", re.IGNORECASE
)
_CODE = re.compile(r"\brun code:\s*(.+)", re.IGNORECASE | re.DOTALL)
_FETCH = re.compile(r"\b(?:fetch|open|read)\b[^\n]{0,40}?(https?://[^\s<>\"')\]]+)", re.IGNORECASE)
_MOST_SEARCHES = 100


def search_web(request: Request) -> Reply | None:
    tool, found = request.server_tool("web_search"), _SEARCH.search(request.prompt)
    if tool is None or found is None or request.after_results:
        return None
    wanted, topic = min(int(found[1] or 1), _MOST_SEARCHES), found[2].strip()
    done = _searches(request)
    pauses = done + ROUNDS < wanted
    last = min(wanted, done + ROUNDS) - 1
    blocks: list[Block] = []
    for number in range(done, last + 1):
        tool_input = {"query": topic if wanted == 1 else f"{topic} {number + 1}"}
        is_open = pauses and number == last
        result = None if is_open else run_server_tool(request, "web_search", tool_input, number)
        blocks.append(ServerUse("web_search", tool_input, result))
    if pauses:
        return Reply(tuple(blocks), "pause_turn")
    page = found_page(tool, topic if wanted == 1 else f"{topic} {wanted}")
    answer = Text(f"The pages say everything about {topic}.", citations=(cite_page(page, topic),))
    return Reply((*blocks, Text(f"I searched {wanted} times. "), answer))


def run_code(request: Request) -> Reply | None:
    found, tool = _CODE.search(request.prompt), request.server_tool("code_execution")
    if not found or tool is None or request.after_results:
        return None
    use = _code_call(tool, found[1].strip())
    result = run_server_tool(request, use.name, use.input, 0)
    if result.get("return_code"):
        return Reply((replace(use, result=result), Text("It failed.")))
    printed = result["stdout"].strip()
    sentence = f"It printed {printed}." if printed else "It wrote the file."
    return Reply((replace(use, result=result), Text(sentence)))


def _code_call(tool: json_codec.Object, code: str) -> ServerUse:
    """Call code execution: its first version runs code, later ones a shell."""
    if tool["type"] == "code_execution_20250522":
        return ServerUse("code_execution", {"code": code}, None)
    is_python = code.startswith("print(")
    command = f'python3 -c "{code}"' if is_python else code
    return ServerUse("bash_code_execution", {"command": command}, None)


def read_page(request: Request) -> Reply | None:
    """Fetch a page and, if citations are on, quote its first sentence."""
    found, tool = _FETCH.search(request.prompt), request.server_tool("web_fetch")
    if not found or tool is None or request.after_results:
        return None
    tool_input = {"url": found[1].rstrip(".,;")}
    result = run_server_tool(request, "web_fetch", tool_input, 0)
    use = ServerUse("web_fetch", tool_input, result)
    if "content" not in result:
        return Reply((use, Text(f"The page could not be read: {result['error_code']}.")))
    made = cite_document(result["content"], len(list(sources_in(request, "document"))))
    if made is None:
        return Reply((use, Text(f"I read {result['content']['title']}.")))
    quoted = Text(f"“{made['cited_text'].strip()}”", citations=(made,))
    return Reply((use, Text("The page says: "), quoted))


def _searches(request: Request) -> int:
    """Count the searches since the latest prompt of the user."""
    return sum(
        block["type"] == "server_tool_use" and block["name"] == "web_search"
        for block in turn_blocks(request)
    )
