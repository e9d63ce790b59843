"""Django's handler of requests, on threads that are kept with their database connections.

Django starts a thread for each request, and with it a new connection to SQLite, whose pragmas and
functions cost more than what a request then asks of it. Here a request takes a thread that another
one has left. No two requests share a thread at the same time.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_started
from django.db import close_old_connections, connections, reset_queries
from django.http import HttpResponseBadRequest

from agentweb.edge.error_responses import describe_status, make_headers

#: Idle threads that are kept; more run while more requests are handled at once.
KEPT = 16


class PageHandler(ASGIHandler):
    """Handles requests like Django's own."""

    def __init__(self) -> None:
        super().__init__()
        self._idle: list[ThreadPoolExecutor] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "request")
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)
        except asyncio.CancelledError:
            # The server gives up a request whose client left; its thread may be working still.
            _end_thread(thread)
            raise
        except BaseException:
            self._keep(thread)
            raise
        self._keep(thread)

    def _keep(self, thread: ThreadPoolExecutor) -> None:
        if len(self._idle) < KEPT:
            self._idle.append(thread)
        else:
            _end_thread(thread)

    def create_request(self, scope: Any, body_file: Any) -> Any:
        """Make the request; one whose query cannot be read is answered 400, as by a view."""
        try:
            return super().create_request(scope, body_file)
        except SuspiciousOperation:
            headers = {name.decode(): value.decode() for name, value in make_headers()}
            return None, HttpResponseBadRequest(describe_status(400), headers=headers)


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
