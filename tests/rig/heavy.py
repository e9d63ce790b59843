"""Tools that block the event loop of their process or take much memory."""

from __future__ import annotations

import asyncio
import time

from tools.framework.tool import ToolContext, tool

#: Seconds for which `block` holds the event loop up.
BLOCKED = 4.0


@tool(icon="tool", effect="read")
async def gorge(context: ToolContext, megabytes: int) -> str:
    """Take so much memory for a moment."""
    taken = bytearray(megabytes * 1_048_576)
    await asyncio.sleep(0)
    return f"{len(taken)} bytes were there"


@tool(icon="tool", effect="read")
async def block(context: ToolContext) -> str:
    """Hold everything up."""
    time.sleep(BLOCKED)
    return "It is over."


HEAVY = {each.name: each for each in (gorge, block)}
