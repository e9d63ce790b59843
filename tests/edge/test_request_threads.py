"""Requests run on kept threads, and never two on one."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from django.core.signals import request_finished
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
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


def stream_words(_: HttpRequest) -> StreamingHttpResponse:
    async def read() -> AsyncIterator[str]:
        yield "in "
        yield "parts"

    return StreamingHttpResponse(read())


def break_off(_: HttpRequest) -> StreamingHttpResponse:
    async def read() -> AsyncIterator[str]:
        yield "in "
        raise OSError("lost")

    return StreamingHttpResponse(read())


urlpatterns = [
    path("busy/", work_on), path("thread/", say_thread), path("stream/", stream_words),
    path("lost/", break_off),
]  # fmt: skip


@pytest.fixture
def handler(settings: Any) -> PageHandler:
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    return PageHandler()


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """Return what happens, in order: the thread in which each request is finished, and messages."""
    found = list[Any]()

    def finish(**_: Any) -> None:
        found.append(threading.get_ident())

    request_finished.connect(finish)
    try:
        yield found
    finally:
        request_finished.disconnect(finish)


async def request(handler: PageHandler, where: str, told: list[Any] | None = None) -> bytes:
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
        if told is not None:
            told.append(message["type"].removeprefix("http.response."))
        if message["type"] == "http.response.body" and not message.get("more_body"):
            is_sent.set()

    scope = {"type": "http", "method": "GET", "path": where, "query_string": b"", "headers": []}
    await handler(scope, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


async def test_requests_after_each_other_have_one_thread(handler: PageHandler) -> None:
    first, second = [await request(handler, "/thread/") for _ in range(2)]
    assert first == second
    assert len(handler._idle) == 1


async def test_a_whole_response_is_closed_by_the_work_that_made_it(
    handler: PageHandler, told: list[Any]
) -> None:
    thread = await request(handler, "/thread/", told)
    assert told == [int(thread), "start", "body"]


async def test_a_streamed_response_is_closed_when_it_was_sent(
    handler: PageHandler, told: list[Any]
) -> None:
    assert await request(handler, "/stream/", told) == b"in parts"
    assert told[:-1] == ["start", "body", "body", "body"]
    assert isinstance(told[-1], int)


async def test_a_streamed_response_that_breaks_off_is_closed_too(
    handler: PageHandler, told: list[Any]
) -> None:
    with pytest.raises(OSError, match="lost"):
        await request(handler, "/lost/", told)
    assert told[:-1] == ["start", "body"]
    assert isinstance(told[-1], int)


async def test_a_response_whose_client_has_left_is_closed_and_its_thread_kept(
    handler: PageHandler, told: list[Any]
) -> None:
    body = [{"type": "http.request", "body": b""}]
    _works.clear()
    _may_end.clear()

    async def receive() -> Any:
        if body:
            return body.pop()
        assert await asyncio.to_thread(_works.wait, 60)
        asyncio.get_running_loop().call_later(0.05, _may_end.set)
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        """Take what nobody reads any more."""

    scope = {"type": "http", "method": "GET", "path": "/busy/", "query_string": b"", "headers": []}
    await handler(scope, receive, send)
    assert len(set(told)) == len(handler._idle) == 1


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
