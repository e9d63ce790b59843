"""What the scripted model does in `bench hostile`: the call that a message names.

A message is `hostile NAME`; `CALLS` has the tool and its arguments for each name. `read PATH` reads
a file of the workspace, for files of a corpus.
"""

from __future__ import annotations

from typing import Any

from agentweb.emulator.script import after, call, say, when

#: Characters of the largest argument that a tool takes.
_LONG = 3_999
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
}
SCRIPT = [
    *(when(rf"^hostile {name}$", call(tool, **given)) for name, (tool, given) in CALLS.items()),
    when(r"^read (?P<path>\S+)$", call("read_file", path="{path}")),
    *(after(tool, say("Done.")) for tool in sorted({tool for tool, _ in CALLS.values()})),
]
