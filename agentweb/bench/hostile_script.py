"""What the scripted model does in `bench hostile`: the call that a message names.

A message is `hostile NAME`; `CALLS` has the tool and its arguments for each name. `hostile
matching URL` fetches a long text first, and then searches its original. `read PATH` reads a file of
the workspace, for files of a corpus.
"""

from __future__ import annotations

from typing import Any

from agentweb.emulator.scenes.scene import Reply, ToolUse
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.script import after, call, say, when

#: Characters of the largest argument that a tool takes.
_LONG = 3_999
#: A text that is nearly found at each of its 1.9 million places; `recall` takes 1,000 characters.
FETCHED, MATCHING = "a" * 1_900_000, "a" * 999 + "b"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "literal": ("search_files", {"text": "a" * _LONG + "b"}),
    "reversed": ("search_files", {"text": "b" + "a" * _LONG}),
    "brackets": ("search_files", {"text": "a", "names": "[" * 1_500}),
    "classes": ("search_files", {"text": "a", "names": "[a-z]" * 40}),
    "stars": ("search_files", {"text": "", "names": "*a" * 90 + "b"}),
    "markup": ("read_file", {"path": "less-than.html"}),
    "tags": ("read_file", {"path": "nested.html"}),
    "json": ("read_file", {"path": "deep.json"}),
    "loop": ("read_file", {"path": "loop.pdf"}),
    "bomb": ("read_file", {"path": "bomb.pdf"}),
    "junk": ("read_file", {"path": "junk.pdf"}),
    "table": ("read_file", {"path": "wide.csv"}),
    "growth": ("edit_file", {"path": "long.txt", "old": "a", "new": "b" * 60_000, "all": True}),
    "recall": ("recall", {"query": ("a" * 30 + " ") * 30}),
    "missing": ("recall", {"id": "toolu_" + "x" * 900, "matching": "a" * 900}),
    "spin": ("mcp__spinning__spin", {}),
}


def recall_fetched(request: Request) -> Reply | None:
    """Search the text that was just fetched."""
    for use in request.last_results:
        if use.name == "fetch_url":
            return Reply((ToolUse("recall", {"id": use.id, "matching": MATCHING}),))
    return None


SCRIPT = [
    *(when(rf"^hostile {name}$", call(tool, **given)) for name, (tool, given) in CALLS.items()),
    when(r"^hostile matching (?P<url>\S+)$", call("fetch_url", url="{url}")),
    recall_fetched,
    when(r"^read (?P<path>\S+)$", call("read_file", path="{path}")),
    *(after(tool, say("Done.")) for tool in sorted({tool for tool, _ in CALLS.values()})),
]
