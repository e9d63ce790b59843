"""A tool for the agent, made of the definition that an administrator approved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tools.framework.icons import GENERAL_ICON
from tools.framework.tool import Effect, Tool, ToolContext, ToolResult
from tools.mcp import schemas
from tools.mcp.content import MOST_BYTES, ImageType, convert_result
from tools.mcp.pool import Pool
from tools.mcp.rewritten_schemas import restore_arguments, rewrite_schema

#: Seconds added to the deadline of a call, to connect to a server that was just switched on.
REACH = 5.0


@dataclass(frozen=True, slots=True)
class Approved:
    """What an administrator approved: the definition, its name for the model, its effect."""

    server: str
    name: str
    call_name: str
    text: str
    digest: str
    effect: Effect
    is_private: bool
    deadline: float


def make_tool(approved: Approved, pool: Pool, image_type: ImageType) -> Tool:
    """Make a tool that calls the server through the pool."""
    definition: dict[str, Any] = json.loads(approved.text)

    async def run(_context: ToolContext, arguments: dict[str, Any]) -> ToolResult:
        given = restore_arguments(arguments, definition["inputSchema"])
        found = await pool.call(approved.server, approved.name, approved.digest, given)
        return convert_result(approved.server, found, image_type)

    return Tool(
        name=approved.call_name,
        description=definition.get("description") or definition.get("title") or approved.name,
        input_schema=rewrite_schema(definition["inputSchema"]).schema,
        icon=GENERAL_ICON,
        effect=approved.effect,
        results="head_tail",
        timeout=approved.deadline + REACH,
        max_bytes=MOST_BYTES,
        origin="mcp",
        is_private=approved.is_private,
        destination=lambda _arguments: f"mcp:{approved.server}",
        run=run,
        check=schemas.check_arguments,
        long_arguments=None,
        action=_choose_action(approved.effect, definition.get("annotations")),
    )


def _choose_action(effect: Effect, annotations: object) -> str | None:
    """Return "" for a tool that only reads, by its approved effect or its server's annotations."""
    hints = annotations if isinstance(annotations, dict) else {}
    return "" if effect == "read" or hints.get("readOnlyHint") is True else None
