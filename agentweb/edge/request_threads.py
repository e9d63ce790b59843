"""Django's handler of requests, on threads that are kept with their database connections.

Django starts a thread for each request, and with it a new connection to SQLite, whose pragmas and
functions cost more than what a request then asks of it. Here a request takes a thread that another
one has left, and takes it when it has work for it: a request that waits for its body, or for its
place in a queue, has none. No two requests share a thread at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, cast

import django
from asgiref.sync import AsyncToSync, ThreadSensitiveContext, sync_to_async
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_started
from django.db import close_old_connections, connections, reset_queries
from django.http import HttpResponseBadRequest

from agentweb.edge.error_responses import describe_status, make_headers
from agentweb.edge.sharing import ALL_AT_ONCE

#: Idle threads that are kept; more run while more requests are handled at once. A request gives up
#: its place when its response begins and its thread when it ends, so there are twice as many. With
#: as many as places, 200 requests within a second ended and started over seventy.
KEPT = 2 * ALL_AT_ONCE


class PageHandler(ASGIHandler):
    """Handles requests like Django's own."""

    def __init__(self) -> None:
        super().__init__()
        self._idle: list[ThreadPoolExecutor] = []

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the chain so that a view and what is around it run in one call of a thread.

        Django's asynchronous handler would return to the loop before each view, and switch to the
        thread and back for what middleware does right before it. The chain of its synchronous
        handler does not; of that, the outermost middleware runs on the loop where it can.
        """
        super().load_middleware(is_async=False)
        chain = cast("Any", self)._middleware_chain
        runs_on_loop = isinstance(chain, AsyncToSync)
        self._middleware_chain: Any = chain.awaitable if runs_on_loop else sync_to_async(chain)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        borrowed = _BorrowedThread(self._idle)
        try:
            async with ThreadSensitiveContext(executor=borrowed):
                await self.handle(scope, receive, send)
        except asyncio.CancelledError:
            # The server gives up a request whose client left; its thread may be working still.
            if borrowed.thread is not None:
                _end_thread(borrowed.thread)
            raise
        except BaseException:
            self._keep(borrowed.thread)
            raise
        self._keep(borrowed.thread)

    def _keep(self, thread: ThreadPoolExecutor | None) -> None:
        if thread is None:
            return
        if len(self._idle) < KEPT:
            self._idle.append(thread)
        else:
            _end_thread(thread)

    async def listen_for_disconnect(self, receive: Any) -> None:
        """Return when the client has left.

        Django raises an error, which refers to the request, which refers to the error: both stay in
        memory until the next full collection. To the caller a return means the same.
        """
        while (await receive())["type"] != "http.disconnect":
            pass

    def create_request(self, scope: Any, body_file: Any) -> Any:
        """Make the request; one whose query cannot be read is answered 400, as by a view."""
        try:
            return super().create_request(scope, body_file)
        except SuspiciousOperation:
            headers = {name.decode(): value.decode() for name, value in make_headers()}
            return None, HttpResponseBadRequest(describe_status(400), headers=headers)


class _BorrowedThread(Executor):
    """The thread of one request; None before its first work."""

    def __init__(self, idle: list[ThreadPoolExecutor]) -> None:
        self._idle = idle
        self.thread: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.thread is None:
            self.thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "request")
        return self.thread.submit(work, *args, **kwargs)


def _end_thread(thread: ThreadPoolExecutor) -> None:
    """End a thread after what it still does.

    Unless it closes its connection, that is garbage in reference cycles, half a megabyte on SQLite,
    until a rare full collection: 200 messages at once left 120 MB.
    """
    thread.submit(connections.close_all)
    thread.shutdown(wait=False)


def make_page_handler() -> PageHandler:
    """Set Django up, and return the handler of its pages."""
    django.setup(set_prefix=False)
    # Both are done, or not needed, when the request before ends: old connections are closed then.
    # Here they would cost each request another switch to its thread.
    request_started.disconnect(close_old_connections)
    request_started.disconnect(reset_queries)
    return PageHandler()
