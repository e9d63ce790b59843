"""The icons that tools may have: names of symbols in `templates/_icons.html`.

The set is closed, so a tool without an icon is an error at import; a test compares the set with the
template.
"""

from __future__ import annotations

from typing import Literal, get_args

Icon = Literal[
    "archive", "check", "clip", "clock", "file", "find", "folder", "fork", "globe", "keys",
    "layers", "load", "pen", "pin", "recall", "review", "save", "send", "thought", "tool", "tools",
    "trash", "tune",
]  # fmt: skip
ICONS: frozenset[str] = frozenset(get_args(Icon))
#: Icons of the tools that the API itself runs, by their names in answers.
API_TOOL_ICONS: dict[str, Icon] = {"web_search": "find"}
#: The icon of MCP tools, and of removed tools in old conversations.
GENERAL_ICON: Icon = "tool"
