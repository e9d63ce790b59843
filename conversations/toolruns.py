"""Answering the tool calls of one answer: side by side, within the caps, results in their order.

A call always gets a result, whatever its tool does, because an answer without its results would end
the conversation. Only a port that cannot write any more (a lost lease) leaves calls open.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from conversations.answer import ToolUse
from conversations.context import wire
from conversations.context.view import Message
from conversations.events import RoundChanged
from conversations.ports import Ports, ToolDone
from conversations.switch import Stopped

logger = logging.getLogger("agentweb.runner")

CANCELLED = "Cancelled: the turn was stopped before this tool finished."
TOO_MANY = "Not run: this turn has reached its limit of tool calls."
FLAWED = "Not run: the input was not one JSON object. It is "
STOPPED = "Not run, stopped: "
BROKEN = "The tool failed on the server; it was logged."


@dataclass(frozen=True, slots=True)
class ToolRuns:
    """The tool calls of one round; `allowed` of them may run, the others are told `denied`."""

    ports: Ports
    changed: RoundChanged
    parallel: int
    allowed: int
    denied: str = TOO_MANY

    async def answer(self, uses: tuple[ToolUse, ...]) -> tuple[Message, bool]:
        """Run the calls, store their results as one message, say whether every call was wrong."""
        gate = asyncio.Semaphore(self.parallel)
        tasks = [
            asyncio.create_task(self._use(use, gate, is_allowed=at < self.allowed))
            for at, use in enumerate(uses)
        ]
        try:
            done = await asyncio.gather(*tasks)
        finally:
            # When a port fails (the lease is lost), no call goes on without its turn.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        message = await self.ports.log.store_results(wire.join(map(_result, uses, done)))
        return message, all(one.is_wrong for one in done)

    async def _use(self, use: ToolUse, gate: asyncio.Semaphore, *, is_allowed: bool) -> ToolDone:
        """Answer one call; a stop makes it a cancelled one, committed like any other."""
        async with gate:
            if not is_allowed:
                done = ToolDone(wire.encode(self.denied), "denied")
            elif use.flaw:
                done = ToolDone(wire.encode(FLAWED + use.flaw), "error", is_wrong=True)
            else:
                done = await self._run(use)
            await self.ports.tools.finished(use, done)
        await self.ports.tell(self.changed)
        return done

    async def _run(self, use: ToolUse) -> ToolDone:
        """Run one call: `started` is committed before it leaves."""
        switch = self.ports.switch
        try:
            switch.check()
            await self.ports.tools.started(use)
            await self.ports.tell(self.changed)
            with switch.interruptible():
                return await self.ports.tools.run(use)
        except Stopped:
            return ToolDone(wire.encode(CANCELLED), "cancelled")
        except (asyncio.CancelledError, Exception) as error:
            # A cancellation that nobody asked this task for is a bug of the tool.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            logger.exception("tool %s failed", use.name)
            return ToolDone(wire.encode(BROKEN), "error")


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _result(use: ToolUse, done: ToolDone) -> str:
    head = wire.encode({"type": "tool_result", "tool_use_id": use.id})
    is_error = "" if done.state == "ok" else ',"is_error":true'
    return f'{head[:-1]},"content":{done.content}{is_error}}}'
