"""Django's handler of requests, on threads that are kept with their database connections.

Django starts a thread for each request, and with it a new connection to SQLite, whose pragmas and
functions cost more than what a request then asks of it. Here a request takes a thread that another
one has left, and takes it when it has work for it: a request that waits for its body, or for its
place in a queue, has none. No two requests share a thread at the same time.

The response is closed by the work that made it. Django sends it first, and then switches to the
thread once more: to close files of the request and connections that are too old, which the answer
does not need any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import django
from asgiref.sync import (
    AsyncToSync,
    ThreadSensitiveContext,
    iscoroutinefunction,
    sync_to_async,
)
from django.core.exceptions import RequestAborted, SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connections, reset_queries
from django.http import HttpRequest, HttpResponseBadRequest, HttpResponseBase
from django.urls import set_script_prefix

from agentweb.edge.error_responses import describe_status, make_headers
from agentweb.edge.sharing import ALL_AT_ONCE
from agentweb.edge.uploaded_names import PageRequest

#: Idle threads that are kept; more run while more requests are handled at once. A request gives up
#: its place when its response begins and its thread when it ends, so there are twice as many. With
#: as many as places, 200 requests within a second ended and started over seventy.
KEPT = 2 * ALL_AT_ONCE


class PageHandler(ASGIHandler):
    """Handles requests like Django's own."""

    request_class = PageRequest

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
        self._middleware_chain: Any = (
            chain.awaitable if runs_on_loop else self.adapt_method_mode(True, chain)
        )

    def adapt_method_mode(self, is_async: bool, method: Any, *args: Any, **names: Any) -> Any:
        """Adapt a handler; one that is called from the loop closes its response in its thread."""
        if is_async and not iscoroutinefunction(method):
            method = partial(_call_and_close, method)
        return super().adapt_method_mode(is_async, method, *args, **names)

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

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, unless its client leaves first."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        set_script_prefix(get_script_prefix(scope))
        await request_started.asend(sender=type(self), scope=scope)
        request, refusal = self.create_request(scope, body)
        if request is None:
            await self.send_response(refusal, send)
            await _close(refusal)
        else:
            await self._answer_unless_left(request, receive, send)
        body.close()

    async def _answer_unless_left(self, request: HttpRequest, receive: Any, send: Any) -> None:
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        answering = asyncio.create_task(self._answer(request, send))
        await asyncio.wait((leaving, answering), return_when=asyncio.FIRST_COMPLETED)
        for task in (leaving, answering):
            task.cancel()
        await asyncio.wait((leaving, answering))
        if answering.cancelled():
            await request_finished.asend(sender=type(self))
        else:
            await _close(answering.result())
        if not leaving.cancelled():
            leaving.result()

    async def _answer(self, request: HttpRequest, send: Any) -> HttpResponseBase:
        """Send the response and return it; a client that left meanwhile lacks the rest of it.

        Django leaves one open whose content breaks off, with its file and its connection.
        """
        response: HttpResponseBase = await self.run_get_response(request)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self.send_response(response, send)
        except Exception:
            await _close(response)
            raise
        return response

    async def listen_for_disconnect(self, receive: Any) -> None:
        """Return when the client has left.

        Django raises an error, which refers to the request, which refers to the error: both stay in
        memory until the next full collection.
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


def _call_and_close(method: Callable[[Any], Any], request: Any) -> Any:
    """Close a response that is whole; one that streams is closed when it was sent."""
    response = method(request)
    if not response.streaming:
        request.close()
        response.close()
    return response


async def _close(response: Any) -> None:
    if not response.closed:
        await sync_to_async(response.close)()


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
