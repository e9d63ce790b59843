"""Side calls: calls outside of any turn. Like turns they belong to the server, not to a page.

Nothing depends on a side call: its page may be closed, a shutdown cancels it, and the sweep closes
calls whose end was not recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from conversations.agent.ports import Ending, Sending, Sent
from conversations.agent.stop import Switch
from conversations.context.view.view import Message
from conversations.db import run_db
from conversations.runtime.adapters import TurnCalls
from conversations.turns.side_calls import close_side_call

#: Seconds that a stopped call has to record its end.
LAST_SECONDS = 5


class SideCalls(TurnCalls):
    """The Calls and Model ports of a conversation in which no turn runs."""

    async def close(self, sent: Sent, ending: Ending) -> Message | None:
        await run_db(close_side_call, call_id=sent.call, ending=ending, timing=self._timing())
        return None


@dataclass(frozen=True, slots=True)
class SideCallPorts:
    """The ports and the stop switch that one side call needs."""

    calls: SideCalls
    model: SideCalls
    switch: Switch

    async def open(self, sending: Sending) -> Sent:
        return await self.calls.open(sending)


class SideCallTasks:
    """The side calls that run in this process."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], Switch] = {}

    def begin(self, name: str, work: Callable[[Switch], Coroutine[None, None, None]]) -> None:
        switch = Switch()
        task = asyncio.create_task(work(switch), name=name)
        self._running[task] = switch
        task.add_done_callback(lambda done: self._running.pop(done, None))

    async def drain(self) -> None:
        """Stop all running side calls and wait for them to record their end."""
        for switch in self._running.values():
            switch.request("shutdown")
        if self._running:
            await asyncio.wait(list(self._running), timeout=LAST_SECONDS)
