"""Every tool there is, in the order the model is told of them.

The definitions open each request, so their bytes must not change from call to call: the order is
this tuple's, and `recall`, offered only when there is something to recall, comes last.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tools.base import Tool, ToolContext, ToolResult
from tools.clock import current_time
from tools.execute import execute, failure
from tools.fetch_url import fetch_url
from tools.files import list_files, read_file, write_file
from tools.recall import recall
from tools.text import quote

TOOLS: dict[str, Tool] = {
    tool.name: tool for tool in (list_files, read_file, write_file, fetch_url, current_time, recall)
}


def definitions(*, recall: bool) -> list[dict[str, Any]]:
    """Describe the tools in the form of the Messages API."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": deepcopy(tool.input_schema),
        }
        for tool in TOOLS.values()
        if recall or tool.name != "recall"
    ]


async def run(name: str, input: object, context: ToolContext) -> ToolResult:
    """Run a tool by name; what is unknown is answered, not raised."""
    if name not in TOOLS:
        known = ", ".join(TOOLS)
        return failure("unknown_tool", f"There is no tool {quote(name)}. The tools are: {known}.")
    return await execute(TOOLS[name], input, context)
