"""The tool `list_files`: what is in the workspace, with sizes."""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.framework.tool import ToolContext, tool

MOST_ENTRIES = 1_000


@tool(icon="folder", effect="read", results="head_tail", timeout=15, origin="workspace")
async def list_files(
    context: ToolContext, path: Annotated[str, "folder to list; empty for the whole workspace"] = ""
) -> str:
    """List the files in the user's workspace, with their sizes in bytes."""
    entries = await asyncio.to_thread(context.workspace.entries, path)
    if not entries:
        return "There are no files here."
    lines = [f"{entry.path} ({entry.bytes:,} bytes)" for entry in entries[:MOST_ENTRIES]]
    if len(entries) > MOST_ENTRIES:
        lines.append(f"[{MOST_ENTRIES:,} of {len(entries):,} files shown; list a folder for less]")
    return "\n".join(lines)
