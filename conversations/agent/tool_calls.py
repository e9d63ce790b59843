"""Run the tool calls of one answer: concurrently, within the caps, results in the calls' order.

A call always gets a result, whatever its tool does, because an answer without its results would
make the conversation unusable. Calls stay open only when a port can no longer write (a lost lease)
or an approval is needed, which is requested once all other calls have run. When another worker
resumes, ended calls are not run again; started ones are, unless they may have changed something:
their result then is that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.events import RoundChanged
from conversations.agent.ports import Ports, ToolDone
from conversations.agent.resume import OpenRound
from conversations.agent.stop import Stopped
from conversations.context.view import wire
from conversations.context.view.view import Message

logger = logging.getLogger("agentweb.runner")

CUT_SHORT = "Outcome unknown: the server stopped while this tool ran. Check before repeating it."
CANCELLED = "Cancelled: the turn was stopped before this tool was started."
STOPPED_WITHIN = (
    "Cancelled: the turn was stopped while this tool ran. What it had done by then is unknown:"
    " check before repeating it."
)
TOO_MANY = "Not run: this turn has reached its limit of tool calls."
FLAWED = "Not run: the input was not one JSON object. It is "
STOPPED = "Not run, stopped: "
BROKEN = "The tool failed on the server; it was logged."


@dataclass(frozen=True, slots=True)
class ToolRuns:
    """The tool calls of one round; `allowed` of them may run, the others get `denied` as result."""

    ports: Ports
    changed: RoundChanged
    parallel: int
    allowed: int
    denied: str = TOO_MANY

    async def answer(self, calls: OpenRound) -> tuple[Message, bool] | None:
        """Run the calls and store their results; None when approval must be requested first.

        The flag says whether every call was invalid.
        """
        verdicts = await self._check_calls(calls)
        gate = asyncio.Semaphore(self.parallel)
        tasks = [
            asyncio.create_task(self._use(use, calls, gate, verdicts.get(use.id)))
            for use in calls.uses
        ]
        try:
            done = await asyncio.gather(*tasks)
        finally:
            # When a port fails (the lease is lost), no call outlives its turn.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        asks = [one for one in done if isinstance(one, ApprovalQuestion)]
        if asks:
            await self.ports.tools.ask(asks)
            return None
        ended = [one for one in done if isinstance(one, ToolDone)]
        pairs = zip(calls.uses, ended, strict=True)
        content = wire.join(write_result(use.id, one) for use, one in pairs)
        message = await self.ports.log.store_results(content)
        return message, all(one.is_wrong for one in ended)

    async def _check_calls(self, calls: OpenRound) -> dict[str, ApprovalQuestion | ToolDone]:
        """Return verdicts for the remaining calls that may not run, or not yet."""
        found: dict[str, ApprovalQuestion | ToolDone] = {}
        free: list[ToolUse] = []
        for at, use in enumerate(calls.uses):
            if use.id in calls.done:
                continue
            if calls.started.get(use.id) == "write":
                found[use.id] = ToolDone(wire.encode(CUT_SHORT), "unknown")
            elif use.id in calls.started:
                # It was approved before it was started.
                continue
            elif at >= self.allowed:
                found[use.id] = ToolDone(wire.encode(self.denied), "denied")
            elif use.flaw:
                found[use.id] = ToolDone(wire.encode(FLAWED + use.flaw), "error", is_wrong=True)
            else:
                free.append(use)
        return found | dict(await self.ports.tools.check_calls(free))

    async def _use(
        self,
        use: ToolUse,
        calls: OpenRound,
        gate: asyncio.Semaphore,
        verdict: ApprovalQuestion | ToolDone | None,
    ) -> ToolDone | ApprovalQuestion:
        """Answer one call; after a stop its result is "cancelled", committed like any other."""
        if use.id in calls.done:
            return calls.done[use.id]
        async with gate:
            if isinstance(verdict, ApprovalQuestion):
                if not self.ports.switch.reason:
                    return verdict
                done = ToolDone(wire.encode(CANCELLED), "cancelled")
            else:
                done = verdict or await self._run(use)
            await self.ports.tools.finished(use, done)
        await self.ports.display.hold(self.changed)
        return done

    async def _run(self, use: ToolUse) -> ToolDone:
        """Run one call; `started` is committed before it begins."""
        switch, words = self.ports.switch, CANCELLED
        try:
            switch.check()
            await self.ports.tools.started(use)
            words = STOPPED_WITHIN
            await self.ports.display.hold(self.changed)
            with switch.interruptible():
                return await self.ports.tools.run(use)
        except Stopped:
            return ToolDone(wire.encode(words), "cancelled")
        except (asyncio.CancelledError, Exception) as error:
            # A cancellation that nobody requested of this task is a bug of the tool.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            logger.exception("tool %s failed", use.name)
            return ToolDone(wire.encode(BROKEN), "error")


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def write_result(id: str, done: ToolDone) -> str:
    """Write the block of a result; the API accepts an error flag only if all content is text.

    A failed result with an image is sent without the flag: its text describes the error.
    """
    head = wire.encode({"type": "tool_result", "tool_use_id": id})
    is_error = "" if done.state == "ok" or _has_media(done.content) else ',"is_error":true'
    return f'{head[:-1]},"content":{done.content}{is_error}}}'


def _has_media(content: str) -> bool:
    parts = wire.decode(content) if content.startswith("[") else []
    return any(part.get("type") != "text" for part in parts)
