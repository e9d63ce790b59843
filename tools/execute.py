"""Run one tool so that whatever happens is an answer.

Bad input, refusals, exceptions and deadlines all become error results in plain words; only
cancellation passes through, because a stopped turn must stop. The deadline and the size of the
output are kept here and not in the tools, so a new tool cannot forget them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from tools.base import Content, Tool, ToolContext, ToolResult
from tools.errors import InputError, ToolError
from tools.text import clean, clean_value, clip
from tools.validation import validated

logger = logging.getLogger("tools")


async def execute(tool: Tool, arguments: object, context: ToolContext) -> ToolResult:
    """Check the arguments, run the tool within its limits, and return a result in every case."""
    if context.cancelled():
        return failure("cancelled", "The call was cancelled before it started.")
    deadline = asyncio.timeout(tool.timeout)
    try:
        checked = _checked(arguments, tool)
        async with deadline:
            result = await tool.run(context, checked)
        return _bounded(result, tool.max_bytes)
    except ToolError as error:
        return failure(error.code, str(error), **error.data)
    except Exception as error:
        if isinstance(error, TimeoutError) and deadline.expired():
            return failure("timeout", _late(tool))
        logger.exception("tool %s failed", tool.name, extra={"user_id": context.user_id})
        return failure("failed", f"The tool {tool.name} failed ({type(error).__name__}).")


def _checked(arguments: object, tool: Tool) -> dict[str, Any]:
    try:
        return validated(clean_value(arguments), tool.input_schema)
    except RecursionError as error:
        raise InputError("The input is nested too deeply.") from error


def failure(code: str, message: str, **data: object) -> ToolResult:
    """Make an error result: the words for the model, the code and data for people."""
    return ToolResult(clean(message), is_error=True, details={**data, "code": code})


def _late(tool: Tool) -> str:
    late = f"The tool {tool.name} did not finish within {tool.timeout:g} seconds"
    if tool.effect == "read":
        return f"{late} and was stopped."
    return f"{late}. The outcome is unknown: check before repeating."


def _bounded(result: ToolResult, most: int) -> ToolResult:
    if isinstance(result.content, str):
        content: Content = clip(clean(result.content), most)
    else:
        content = _bounded_blocks(result.content, most)
    return ToolResult(content, result.is_error, result.details)


def _bounded_blocks(blocks: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for block in blocks:
        if block.get("type") == "text":
            text = clip(clean(block["text"]), most)
            kept.append({**block, "text": text})
            most -= len(text.encode())
        elif (size := len(json.dumps(block))) <= most:
            kept.append(block)
            most -= size
        else:
            kept.append(
                {"type": "text", "text": f"[left out: {block.get('type')}, {size:,} bytes]"}
            )
        most = max(most, 0)
    return kept
