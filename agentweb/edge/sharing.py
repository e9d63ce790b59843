"""Requests of one visitor are handled one at a time, so that all visitors get a fair share.

Without this, somebody who sends eight requests at once would get eight times the processor time. A
visitor is a session, or the address where there is none. A request waits from when its body is
complete, and gives up its places when its response begins, so a slow connection delays nobody.

Nothing is refused. A request waits up to `PATIENCE` for the visitor's own request before it, then
up to `ALL_PATIENCE` (6 s together) for one of the `ALL_AT_ONCE` places of the process; then it goes
on without. In a busy process, where one more would only slow down the others, it waits for a place
up to `BUSY_TIMES` as long. A request that has a place for `ALL_HELD` in a process that is not busy
waits for something else, and gives the place up. The one hard limit is `SHARE`: a visitor never has
more requests in hand, because a process has sixteen connections for all.

Each request in hand takes a thread and a database connection, so more of them at once would cost
memory and make every one slower. On SQLite there are half as many places: no request waits for a
server there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import parse_cookie

from conversations.telemetry.event_loop_lag import pulse

#: Concurrent requests of one visitor, and the seconds that another waits for one of them to end.
AT_ONCE, PATIENCE = 1, 1.0
#: Requests that a visitor has in hand at most, however long they take, and all visitors together.
SHARE, ALL_AT_ONCE = (3, 4) if connection.vendor == "sqlite" else (4, 8)
#: Seconds that a request waits for a place among all, and after which its own counts no longer.
ALL_PATIENCE, ALL_HELD = 5.0, 1.0
#: Times `ALL_PATIENCE` that a request waits in a busy process.
BUSY_TIMES = 4

Application = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class _Line:
    """The queue of one visitor's requests; deleted when it is empty."""

    share: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SHARE))
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    holders: int = 0


class _Place:
    """One request's place in its visitor's queue, and in that of all."""

    def __init__(self, line: _Line, all_free: asyncio.Semaphore) -> None:
        self._line, self._all_free = line, all_free
        self._is_heard = False
        self._held: list[asyncio.Semaphore] = []
        self._late: asyncio.TimerHandle | None = None

    async def take(self) -> None:
        if self._is_heard:
            return
        self._is_heard = True
        await self._acquire(self._line.share, None)
        await self._acquire(self._line.free, PATIENCE)
        for _ in range(BUSY_TIMES):
            if await self._acquire(self._all_free, ALL_PATIENCE):
                self._give_up_late()
                return
            if not pulse.is_busy:
                return

    def _give_up_late(self) -> None:
        self._late = asyncio.get_running_loop().call_later(ALL_HELD, self._give_up)

    def _give_up(self) -> None:
        if pulse.is_busy:
            self._give_up_late()
        else:
            self._held.remove(self._all_free)
            self._all_free.release()

    async def _acquire(self, free: asyncio.Semaphore, patience: float | None) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await free.acquire()
                self._held.append(free)
                return True
        return False

    def leave(self) -> None:
        if self._late is not None:
            self._late.cancel()
        while self._held:
            self._held.pop().release()


def queue_by_visitor(application: Application) -> Application:
    """Limit the concurrent requests of each visitor."""
    lines: dict[str, _Line] = {}
    all_free = asyncio.Semaphore(ALL_AT_ONCE)

    async def call_in_turn(scope: Any, receive: Any, send: Any) -> None:
        name = name_visitor(scope)
        line = lines.setdefault(name, _Line())
        line.holders += 1
        place = _Place(line, all_free)

        async def receive_in_turn() -> Any:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                await place.take()
            return message

        async def send_and_leave(message: Any) -> None:
            if message["type"] == "http.response.start":
                place.leave()
            await send(message)

        try:
            await application(scope, receive_in_turn, send_and_leave)
        finally:
            place.leave()
            line.holders -= 1
            if not line.holders:
                del lines[name]

    return call_in_turn


def name_visitor(scope: Any) -> str:
    """Return the visitor's name: session or address."""
    cookies = b"; ".join(value for name, value in scope["headers"] if name.lower() == b"cookie")
    session = parse_cookie(cookies.decode("latin1")).get(settings.SESSION_COOKIE_NAME)
    return f"session {session}" if session else f"address {(scope.get('client') or ('',))[0]}"
