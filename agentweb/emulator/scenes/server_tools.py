"""Server tools: a search of an invented web, and code that only prints.

`search the web for tea`, `search the web 14 times for tea`, `search the web 3 times, 900 words
each, for tea`; `run code: print('hello')`. After ten rounds the server pauses the turn; sent back
as it is, it goes on where it stopped. The pages found lie on the domains the request allows.
"""

from __future__ import annotations

import base64
import re

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.scene import Block, Reply, ServerUse, Text
from agentweb.emulator.scenes.view import Request, blocks

#: So many rounds the server makes in one request.
ROUNDS = 10
_SEARCH = re.compile(
    r"\bsearch the web(?: (\d+) times?)?(?:, (\d+) words each,)? for ([^\n.?!,]+)", re.IGNORECASE
)
_CODE = re.compile(r"\brun code:\s*(.+)", re.IGNORECASE | re.DOTALL)
_PRINT = re.compile(r"""^print\((["'])(.*)\1\)$""")
_MOST_SEARCHES = 100
_FEWEST_WORDS = 12


def search_web(request: Request) -> Reply | None:
    tool, found = request.server_tool("web_search"), _SEARCH.search(request.prompt)
    if tool is None or found is None or request.after_results:
        return None
    wanted = min(int(found[1] or 1), _MOST_SEARCHES)
    words, topic = int(found[2] or _FEWEST_WORDS), found[3].strip()
    done = _searches(request)
    said: list[Block] = []
    for number in range(done, min(wanted, done + ROUNDS)):
        query = topic if wanted == 1 else f"{topic} {number + 1}"
        used_up = number >= (tool.get("max_uses") or wanted)
        said.append(ServerUse("web_search", {"query": query}, _hits(tool, query, words, used_up)))
    if done + ROUNDS < wanted:
        return Reply(tuple(said), "pause_turn")
    page = _page(tool, topic if wanted == 1 else f"{topic} {wanted}", words)
    citation = {
        "type": "web_search_result_location",
        "url": page["url"],
        "title": page["title"],
        "encrypted_index": _sealed(page["url"], 4),
        "cited_text": f"Everything about {topic}.",
    }
    answer = Text(f"The pages say everything about {topic}.", citations=(citation,))
    return Reply((*said, Text(f"I searched {wanted} times. "), answer))


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
        for message in request.messages[request.prompt_at + 1 :]
        for block in blocks(message)
    )


def _hits(tool: json_codec.Object, query: str, words: int, used_up: bool) -> json_codec.Value:
    if used_up:
        return {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    return [_page(tool, query, words)]


def _page(tool: json_codec.Object, query: str, words: int) -> json_codec.Object:
    blocked = tool.get("blocked_domains") or ()
    hosts = tool.get("allowed_domains") or [
        host for host in ("pages.example", "library.example") if host not in blocked
    ]
    slug = re.sub(r"\W+", "-", query.lower()).strip("-")
    url = f"https://{hosts[0] if hosts else 'elsewhere.example'}/{slug}"
    return {
        "type": "web_search_result",
        "url": url,
        "title": f"All about {query}",
        "encrypted_content": _sealed(f"Everything about {query}. ", words),
        "page_age": None,
    }


def _sealed(text: str, words: int) -> str:
    """Text nobody but the API is to read, about as long as so many words."""
    return base64.b64encode((text * (1 + words // 3)).encode()[: words * 6]).decode()
