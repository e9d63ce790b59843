"""Each request has an id: in its log lines, in a response header, on error pages.

An id set by a proxy is kept, with its trace, where the site is behind one (`AGENTWEB_HTTPS`);
otherwise it is generated. The request is also counted and traced here, by the name of its route and
not by its URL, which may contain a secret.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Self

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin

from agentweb.observability.logs import name_route
from conversations.telemetry import spans
from conversations.telemetry.ids import add_log_ids, use_log_ids
from conversations.telemetry.metrics import REQUESTS

logger = logging.getLogger("agentweb.requests")
HEADER = "X-Request-ID"
_SANE = re.compile(r"[A-Za-z0-9_.:-]{8,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
Answer = HttpResponseBase


@sync_and_async_middleware
def identify_requests(
    get_response: Callable[[HttpRequest], Answer | Awaitable[Answer]],
) -> Callable[[HttpRequest], Answer | Awaitable[Answer]]:
    """Middleware around all others."""
    if iscoroutinefunction(get_response):

        async def call_view_async(request: HttpRequest) -> Answer:
            with _Request(request) as one:
                return one.answered(await get_response(request))

        return call_view_async

    def call_view(request: HttpRequest) -> Answer:
        with _Request(request) as one:
            return one.answered(get_response(request))  # type: ignore[arg-type]

    return call_view


class WhoAsks(MiddlewareMixin):
    """Add the person to the log lines of the request, once the session is read."""

    def process_request(self, request: HttpRequest) -> None:
        if request.user.is_authenticated:
            add_log_ids(user=request.user.pk)


class _Request:
    """One request, from its first log line to its response."""

    def __init__(self, request: HttpRequest) -> None:
        self._request, self._began = request, time.monotonic()
        self._stack = ExitStack()
        self.id = find_request_id(request)
        request.request_id = self.id  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        self._stack.enter_context(use_log_ids(request=self.id))
        if spans.is_on() and settings.HTTPS:
            self._stack.enter_context(spans.continue_trace(self._request.headers))
        self._span = self._stack.enter_context(spans.trace_span("request"))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def answered(self, response: Answer) -> Answer:
        response.headers[HEADER] = self.id
        seconds, route = time.monotonic() - self._began, name_route(self._request)
        method = self._request.method if self._request.method in _METHODS else "other"
        status = response.status_code
        REQUESTS.observe(seconds, route=route, method=method, status=status)
        if self._span is not None:
            self._span.set_attributes(
                {"http.route": route, "http.request.method": str(method),
                 "http.response.status_code": status}
            )  # fmt: skip
        if settings.LOG_REQUESTS:
            logger.info("%s %s %s in %d ms", method, route, status, round(seconds * 1000))
        return response


def find_request_id(request: HttpRequest) -> str:
    """Return the id that a trusted proxy set, or make one."""
    given = request.headers.get(HEADER, "")
    if settings.HTTPS and _SANE.fullmatch(given):
        return given
    return secrets.token_hex(8)
