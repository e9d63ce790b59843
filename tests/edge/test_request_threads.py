"""Requests run on kept threads, and never two on one."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
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
    """Request a page as the server does, which says at the end that the client has left."""
    body = [{"type": "http.request", "body": b""}]
    sent = []
    is_sent = asyncio.Event()

    async def receive() -> Any:
        if body:
            return body.pop()
        await is_sent.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            is_sent.set()

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


async def test_a_request_takes_a_thread_when_it_has_work(handler: PageHandler) -> None:
    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        raise AssertionError

    await request(handler, "/thread/")
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    waiting = asyncio.create_task(handler(scope, receive, send))
    await asyncio.sleep(0)
    assert len(handler._idle) == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(handler._idle) == 1


async def test_a_request_leaves_nothing_to_collect(
    handler: PageHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def create(*args: Any) -> Any:
        found = PageHandler.create_request(handler, *args)
        made.append(weakref.ref(found[0]))
        return found

    monkeypatch.setattr(handler, "create_request", create)
    gc.disable()
    try:
        await request(handler, "/thread/")
        assert [one() for one in made] == [None]
    finally:
        gc.enable()
