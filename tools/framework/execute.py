"""Run one tool so that every outcome is a result.

Bad input, refusals, exceptions and deadlines become error results in plain words; only cancellation
passes through, because a stopped turn must stop. Deadline, output size and a thread of its own, in
which its arguments are checked and its result is cleaned too, are enforced here and not in the
tools, so a new tool cannot forget them. A tool that ignores its cancellation is interrupted, and
abandoned if that does not help.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tools.framework.clean_result import clean_result
from tools.framework.clean_text import clean_text, clean_value
from tools.framework.errors import InputError, ToolError, is_of_full_disk
from tools.framework.person import current_person
from tools.framework.tool import Tool, ToolContext, ToolResult
from tools.framework.tool_threads import run_in_tool_thread
from tools.framework.validation import check_lengths

logger = logging.getLogger("tools")

#: Seconds that a cancelled call has to end before it is abandoned.
GRACE = 1.0
#: Cancelled calls that still run; the event loop holds tasks only weakly.
_abandoned: set[asyncio.Task[Any]] = set()


async def execute_tool(tool: Tool, arguments: object, context: ToolContext) -> ToolResult:
    """Check the arguments, run the tool within its limits, and return a result in every case."""
    if context.cancelled():
        return error_result("cancelled", "The call was cancelled before it started.")
    try:
        work = run_in_tool_thread(lambda: _run(tool, arguments, context))
        call = asyncio.ensure_future(work)
        if not await _wait_until_done(call, tool):
            return error_result("timeout", _timeout_message(tool))
        return call.result()
    except ToolError as error:
        return error_result(error.code, str(error), **error.data)
    except Exception as error:
        logger.exception("tool %s failed", tool.name, extra={"user_id": context.user_id})
        if is_of_full_disk(error):
            return error_result("failed", f"There is no room left on the disk for {tool.name}.")
        return error_result("failed", f"The tool {tool.name} failed ({type(error).__name__}).")


async def _run(tool: Tool, arguments: object, context: ToolContext) -> ToolResult:
    current_person.set(context.user_id)
    return clean_result(await tool.run(context, check_arguments(arguments, tool)), tool.max_bytes)


async def _wait_until_done(call: asyncio.Task[Any], tool: Tool) -> bool:
    """Wait for a call; cancel it when it is late or its turn stops. Return whether it is done."""
    try:
        done, _ = await asyncio.wait({call}, timeout=tool.timeout)
    except asyncio.CancelledError:
        await _cancel(call, tool)
        raise
    if not done:
        await _cancel(call, tool)
    return bool(done)


async def _cancel(call: asyncio.Task[Any], tool: Tool) -> None:
    _abandoned.add(call)
    call.add_done_callback(_abandoned.discard)
    call.cancel()
    done, _ = await asyncio.wait({call}, timeout=GRACE)
    if not done:
        logger.warning("tool %s does not end; it is left behind", tool.name)


def check_arguments(arguments: object, tool: Tool) -> dict[str, Any]:
    """Return the arguments cleaned and checked; raises InputError."""
    try:
        checked = tool.check(clean_value(arguments), tool.input_schema)
    except RecursionError as error:
        raise InputError("The input is nested too deeply.") from error
    check_lengths(checked, tool.long_arguments)
    return checked


def error_result(code: str, message: str, **data: object) -> ToolResult:
    """Build an error result: a message for the model, code and data for people."""
    return ToolResult(clean_text(message), is_error=True, details={**data, "code": code})


def _timeout_message(tool: Tool) -> str:
    late = f"The tool {tool.name} did not finish within {tool.timeout:g} seconds"
    if tool.effect == "read":
        return f"{late} and was stopped."
    return f"{late}. The outcome is unknown: check before repeating."
