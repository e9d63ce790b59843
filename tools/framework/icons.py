"""The icons that tools may have: names of symbols in `templates/_icons.html`.

A closed set, so that a tool without a picture is an error when its module is imported; a test
compares the set with the template.
"""

from __future__ import annotations

from typing import Literal, get_args

Icon = Literal[
    "archive", "check", "clip", "clock", "file", "find", "folder", "fork", "globe", "keys",
    "layers", "load", "pen", "pin", "recall", "review", "save", "send", "thought", "tool", "tools",
    "trash", "tune",
]  # fmt: skip
ICONS: frozenset[str] = frozenset(get_args(Icon))
#: Tools that the API itself runs, by the name they have in answers.
API_TOOL_ICONS: dict[str, Icon] = {"web_search": "find"}
#: Tools of MCP servers, and tools of old conversations that are no longer there.
GENERAL_ICON: Icon = "tool"
