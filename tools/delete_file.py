"""The tool `delete_file`: move one file to the trash, from which the person can restore it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.framework.tool import ToolContext, ToolResult, tool
from tools.workspace.workspace import is_done_before


@tool(icon="trash", effect="keyed", results="keep", timeout=30, action="deleted {path}")
async def delete_file(
    context: ToolContext, path: Annotated[str, "file to delete, relative to the workspace"]
) -> ToolResult:
    """Delete one file from the user's workspace. It goes to the trash, where the user can bring it
    back for a while; you cannot."""
    workspace, key = context.workspace, context.key
    if context.repeats is not None and await asyncio.to_thread(
        is_done_before, workspace, path, key, context.repeats
    ):
        return ToolResult(f"Deleted {path}, and the user has brought it back.")
    await asyncio.to_thread(workspace.delete, path, key=key)
    return ToolResult(f"Deleted {path}; the user can bring it back.", details={"from": path})
