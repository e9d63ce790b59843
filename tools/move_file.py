"""The tool `move_file`: move or rename a file or folder; nothing is replaced."""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.framework.tool import ToolContext, ToolResult, tool
from tools.workspace.lines import format_count
from tools.workspace.workspace import is_done_before


@tool(icon="folder", effect="keyed", results="keep", timeout=30, action="moved {path} to {to}")
async def move_file(
    context: ToolContext,
    path: Annotated[str, "file or folder to move, relative to the workspace"],
    to: Annotated[str, "its new path; folders are made as needed, nothing is replaced"],
) -> ToolResult:
    """Move or rename a file or a folder of the user's workspace."""
    workspace, key, since = context.workspace, context.key, context.repeats
    if since is not None and not await asyncio.to_thread(is_done_before, workspace, to, key, since):
        # What was moved may be elsewhere by now, and another file in its old place.
        await asyncio.to_thread(is_done_before, workspace, path, key, since)
    count = await asyncio.to_thread(workspace.move, path, to, key=key)
    what = f"the {format_count(count, 'file')} of {path}" if count > 1 else path
    return ToolResult(f"Moved {what} to {to}.", details={"path": to, "from": path, "files": count})
