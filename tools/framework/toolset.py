"""The tools of one conversation's agent: their definitions, and how they are run.

Read once for each turn, so a call is checked against the same list that was sent to the model. A
tool that exists but may not be used here is kept with the reason: a call of it gets that reason and
not "no such tool", because the model may have used it earlier in the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.framework.clean_text import quote
from tools.framework.execute import error_result, execute_tool
from tools.framework.tool import Tool, ToolContext, ToolResult


@dataclass(frozen=True, slots=True)
class Supply:
    """The tools of one source, and by name the reasons why others of it are missing."""

    tools: tuple[Tool, ...] = ()
    #: the reason for the model, one sentence, as in `Toolset.refused`
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Toolset:
    """`tools` by name, in the order of the definitions."""

    tools: Mapping[str, Tool]
    #: definitions of the tools that the API itself runs, such as web search
    server_tools: tuple[Mapping[str, Any], ...] = ()
    #: tools that may not be used here: the reason for the model, one sentence, by name
    refused: Mapping[str, str] = field(default_factory=dict)

    def definitions(self) -> list[dict[str, Any]]:
        """Return the definitions for the Messages API, the same bytes at every call."""
        own = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in self.tools.values()
        ]
        # A copy, made in a tenth of the time that `deepcopy` takes.
        copied: list[dict[str, Any]] = json.loads(json.dumps([*own, *map(dict, self.server_tools)]))
        return copied

    @property
    def effects(self) -> dict[str, str]:
        return {tool.name: tool.effect for tool in self.tools.values()}

    async def run(self, name: str, input: object, context: ToolContext) -> ToolResult:
        """Run a tool by name; an unknown or refused one is an error result, not an exception."""
        if name in self.tools:
            return await execute_tool(self.tools[name], input, context)
        if name in self.refused:
            return error_result("tool_off", f"The tool {name} cannot be used: {self.refused[name]}")
        known = ", ".join(self.tools) or "none"
        return error_result(
            "unknown_tool", f"There is no tool {quote(name)}. The tools are: {known}."
        )


NO_TOOLS = Toolset({})
