"""The tool `write_file`: create a text file, or replace its full content."""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.framework.clean_text import clean_text
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.workspace.workspace import is_done_before


@tool(
    icon="pen",
    effect="keyed",
    results="keep",
    timeout=60,
    long_arguments=("content",),
    action="wrote {path}",
)
async def write_file(
    context: ToolContext,
    path: Annotated[str, "file to write, relative to the workspace; folders are made as needed"],
    content: Annotated[str, "the whole new content of the file"],
) -> ToolResult:
    """Create a text file in the user's workspace, or replace the whole content of one."""
    data = clean_text(content).encode()
    if context.repeats is not None:
        known = context.workspace, path, context.key, context.repeats
        if await asyncio.to_thread(is_done_before, *known):
            details = {"path": path, "bytes": len(data)}
            return ToolResult(f"Wrote {path} already ({len(data):,} bytes).", details=details)
    created = await asyncio.to_thread(context.workspace.write, path, data, key=context.key)
    done = "Created" if created else "Replaced"
    details = {"path": path, "bytes": len(data), "created": created}
    return ToolResult(f"{done} {path} ({len(data):,} bytes).", details=details)
