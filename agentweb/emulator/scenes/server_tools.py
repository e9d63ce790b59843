"""Server tools: a search of an invented web, and code that only prints.

`search the web for tea`, `search the web 14 times for tea`, `search the web 3 times, 900 words
each, for tea`; `run code: print('hello')`. In its tenth round the server pauses the turn: the call
of that round has no result yet. Sent back as it is, the answer begins with that result and goes on.
The pages found lie on the domains the request allows.
"""

from __future__ import annotations

import re

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.scene import Block, Reply, ServerUse, Text
from agentweb.emulator.scenes.server_runs import found_page, run_server_tool, sealed, turn_blocks
from agentweb.emulator.scenes.view import Request

#: So many rounds the server makes in one request.
ROUNDS = 10
_SEARCH = re.compile(
    r"\bsearch the web(?: (\d+) times?)?(?:, \d+ words each,)? for ([^\n.?!,]+)", re.IGNORECASE
)
_CODE = re.compile(r"\brun code:\s*(.+)", re.IGNORECASE | re.DOTALL)
_PRINT = re.compile(r"""^print\((["'])(.*)\1\)$""")
_MOST_SEARCHES = 100


def search_web(request: Request) -> Reply | None:
    tool, found = request.server_tool("web_search"), _SEARCH.search(request.prompt)
    if tool is None or found is None or request.after_results:
        return None
    wanted, topic = min(int(found[1] or 1), _MOST_SEARCHES), found[2].strip()
    done = _searches(request)
    pauses = done + ROUNDS < wanted
    last = min(wanted, done + ROUNDS) - 1
    said: list[Block] = []
    for number in range(done, last + 1):
        given = {"query": topic if wanted == 1 else f"{topic} {number + 1}"}
        is_open = pauses and number == last
        result = None if is_open else run_server_tool(request, "web_search", given, number)
        said.append(ServerUse("web_search", given, result))
    if pauses:
        return Reply(tuple(said), "pause_turn")
    page = found_page(tool, topic if wanted == 1 else f"{topic} {wanted}")
    answer = Text(f"The pages say everything about {topic}.", citations=(cite_page(page, topic),))
    return Reply((*said, Text(f"I searched {wanted} times. "), answer))


def cite_page(page: json_codec.Object, topic: str) -> json_codec.Object:
    return {
        "type": "web_search_result_location",
        "url": page["url"],
        "title": page["title"],
        "encrypted_index": sealed(page["url"], 4),
        "cited_text": f"Everything about {topic}.",
    }


def run_code(request: Request) -> Reply | None:
    found = _CODE.search(request.prompt)
    if not found or request.server_tool("code_execution") is None or request.after_results:
        return None
    code = found[1].strip()
    printed = _PRINT.match(code)
    result: json_codec.Object = {
        "type": "code_execution_result",
        "stdout": f"{printed[2]}\n" if printed else "",
        "stderr": "" if printed else "the emulator runs nothing but a print of plain words\n",
        "return_code": 0 if printed else 1,
        "content": [],
    }
    told = f"It printed {printed[2]}." if printed else "It failed."
    return Reply((ServerUse("code_execution", {"code": code}, result), Text(told)))


def _searches(request: Request) -> int:
    """Searches made since the user last spoke."""
    return sum(
        block["type"] == "server_tool_use" and block["name"] == "web_search"
        for block in turn_blocks(request)
    )
