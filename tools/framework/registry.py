"""The registry of tools: the modules of `tools/`.

Each module of `tools/` itself is imported once (the packages below it are helpers), and every value
in it that `@tool` made is a tool, so a new tool is one new file. They are sorted by name: the
definitions open each request, and their bytes must not change from call to call or from machine to
machine.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

import tools
from tools.framework.icons import API_TOOL_ICONS, GENERAL_ICON, Icon
from tools.framework.schema import SignatureError
from tools.framework.tool import Tool


def discover_tools(folders: Iterable[str]) -> dict[str, Tool]:
    """Import the modules in these folders; raises SignatureError when two tools share a name."""
    tools_by_name: dict[str, Tool] = {}
    for module in pkgutil.iter_modules(folders, "tools."):
        if module.ispkg:
            continue
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Tool) and tools_by_name.setdefault(value.name, value) is not value:
                raise SignatureError(f"{module.name}: there is another tool named {value.name}")
    return dict(sorted(tools_by_name.items()))


TOOLS: dict[str, Tool] = discover_tools(tools.__path__)

#: `Tool.action` of the tools that the API itself runs; "" records nothing.
API_TOOL_ACTIONS = {"web_search": ""}


def icon_of(name: str) -> Icon:
    """Return the icon of a tool by name; the general one for a tool of an MCP server."""
    if name in TOOLS:
        return TOOLS[name].icon
    return API_TOOL_ICONS.get(name, GENERAL_ICON)
