"""Requests run on kept threads, and never two on one."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import path

from agentweb.edge.request_threads import PageHandler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
_works, _may_end = threading.Event(), threading.Event()


def work_on(_: HttpRequest) -> HttpResponse:
    _works.set()
    assert _may_end.wait(timeout=60)
    return HttpResponse()


def say_thread(_: HttpRequest) -> HttpResponse:
    return HttpResponse(str(threading.get_ident()))


urlpatterns = [path("busy/", work_on), path("thread/", say_thread)]


@pytest.fixture
def handler(settings: Any) -> PageHandler:
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    return PageHandler()


async def request(handler: PageHandler, where: str) -> bytes:
    body = [{"type": "http.request", "body": b""}]
    sent = []

    async def receive() -> Any:
        if not body:
            await asyncio.Event().wait()
        return body.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": where, "query_string": b"", "headers": []}
    await handler(scope, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


async def test_requests_after_each_other_have_one_thread(handler: PageHandler) -> None:
    first, second = [await request(handler, "/thread/") for _ in range(2)]
    assert first == second
    assert len(handler._idle) == 1


async def test_a_thread_that_works_on_for_a_request_that_was_given_up_takes_no_other(
    handler: PageHandler,
) -> None:
    given_up = asyncio.create_task(request(handler, "/busy/"))
    try:
        assert await asyncio.to_thread(_works.wait, 60)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        async with asyncio.timeout(60):
            await request(handler, "/thread/")
        assert len(handler._idle) == 1
    finally:
        _may_end.set()
