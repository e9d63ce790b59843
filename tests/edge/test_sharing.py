"""One visitor's requests go one at a time; nobody else waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentweb.edge import sharing
from agentweb.edge.sharing import AT_ONCE, name_visitor, queue_by_visitor
from conversations.telemetry.event_loop_lag import Pulse

BODY = {"type": "http.request", "body": b"", "more_body": False}
START = {"type": "http.response.start", "status": 200, "headers": []}
END = {"type": "http.response.body", "body": b""}


class Pages:
    """An application that answers when it is let, and says who is in it."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self.goes = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        self.inside.append(scope["path"])
        self.most = max(self.most, len(self.inside))
        await self.goes.wait()
        self.inside.remove(scope["path"])
        await send(START)
        await send(END)


class Busy(Pulse):
    """A process that is busy until it is told otherwise."""

    looks, is_still_busy = 0, True

    @property
    def is_busy(self) -> bool:
        self.looks += 1
        return self.is_still_busy


def scope(path: str, session: str = "", address: str = "192.0.2.1") -> dict[str, Any]:
    cookie = [(b"Cookie", f"theme=dark; sessionid={session}".encode())] if session else []
    return {"type": "http", "path": path, "headers": cookie, "client": [address, 5]}


async def receive_body() -> dict[str, Any]:
    return BODY


async def into_the_void(message: Any) -> None:
    pass


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_visitor_is_a_session_or_an_address() -> None:
    assert name_visitor(scope("/", "abc")) == "session abc"
    assert name_visitor(scope("/")) == "address 192.0.2.1"
    assert name_visitor({"type": "http", "headers": [(b"cookie", b"\xff=;;")], "client": None})


@pytest.mark.asyncio
async def test_the_requests_of_one_session_go_one_at_a_time() -> None:
    pages = Pages()
    application = queue_by_visitor(pages)
    many = [
        asyncio.create_task(application(scope(f"/{at}", "eager"), receive_body, into_the_void))
        for at in range(8)
    ]
    await settled()
    assert pages.inside == [f"/{at}" for at in range(AT_ONCE)]
    other = asyncio.create_task(application(scope("/other", "modest"), receive_body, into_the_void))
    await settled()
    assert "/other" in pages.inside
    pages.goes.set()
    await asyncio.gather(*many, other)
    assert pages.most == AT_ONCE + 1
    assert not pages.inside


@pytest.mark.asyncio
async def test_who_sends_slowly_or_reads_slowly_holds_nobody_up() -> None:
    pages = Pages()
    pages.goes.set()
    application = queue_by_visitor(pages)

    async def never() -> dict[str, Any]:
        await asyncio.Event().wait()
        return BODY

    async def stuck(message: Any) -> None:
        if message is END:
            await asyncio.Event().wait()

    slow = [
        asyncio.create_task(application(scope("/slow", "one"), *way))
        for way in ((never, into_the_void),) * AT_ONCE + ((receive_body, stuck),) * AT_ONCE
    ]
    await settled()
    async with asyncio.timeout(20):
        await application(scope("/quick", "one"), receive_body, into_the_void)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


@pytest.mark.asyncio
async def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "PATIENCE", 0.01)
    pages = Pages()
    application = queue_by_visitor(pages)
    many = [
        asyncio.create_task(application(scope(f"/{at}", "one"), receive_body, into_the_void))
        for at in range(2 * AT_ONCE)
    ]
    async with asyncio.timeout(20):
        while len(pages.inside) < len(many):
            await asyncio.sleep(0.01)
    pages.goes.set()
    await asyncio.gather(*many)


@pytest.mark.asyncio
async def test_a_visitor_has_so_many_requests_in_hand_however_long_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "PATIENCE", 0.0)
    pages = Pages()
    application = queue_by_visitor(pages)
    many = [
        asyncio.create_task(application(scope(f"/{at}", "flood"), receive_body, into_the_void))
        for at in range(50)
    ]
    async with asyncio.timeout(20):
        while len(pages.inside) < sharing.SHARE:
            await asyncio.sleep(0.01)
    await settled()
    assert len(pages.inside) == sharing.SHARE
    pages.goes.set()
    await asyncio.gather(*many)
    assert pages.most == sharing.SHARE


@pytest.mark.asyncio
async def test_a_place_is_given_back_whatever_happens() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise ZeroDivisionError

    application = queue_by_visitor(broken)
    for _ in range(3 * AT_ONCE):
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(sharing.PATIENCE / 2):
                await application(scope("/", "one"), receive_body, into_the_void)


@pytest.mark.asyncio
async def test_all_visitors_together_have_so_many_requests_in_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "ALL_HELD", 600.0)
    pages = Pages()
    application = queue_by_visitor(pages)
    count = sharing.ALL_AT_ONCE + 6
    many = [
        asyncio.create_task(application(scope("/", f"visitor {at}"), receive_body, into_the_void))
        for at in range(count)
    ]
    await settled()
    assert len(pages.inside) == sharing.ALL_AT_ONCE
    pages.goes.set()
    await asyncio.gather(*many)
    assert pages.most == sharing.ALL_AT_ONCE
    # Where the others never end, one goes on after a while.
    monkeypatch.setattr(sharing, "ALL_PATIENCE", 0.01)
    pages.goes.clear()
    many = [
        asyncio.create_task(application(scope("/", f"visitor {at}"), receive_body, into_the_void))
        for at in range(count)
    ]
    async with asyncio.timeout(20):
        while len(pages.inside) < count:
            await asyncio.sleep(0.01)
    pages.goes.set()
    await asyncio.gather(*many)


@pytest.mark.asyncio
async def test_a_request_that_waits_for_something_else_gives_up_its_place_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "ALL_PATIENCE", 600.0)
    monkeypatch.setattr(sharing, "ALL_HELD", 0.01)
    pages = Pages()
    application = queue_by_visitor(pages)
    many = [
        asyncio.create_task(application(scope("/", f"visitor {at}"), receive_body, into_the_void))
        for at in range(3 * sharing.ALL_AT_ONCE)
    ]
    async with asyncio.timeout(60):
        while len(pages.inside) < len(many):
            await asyncio.sleep(0.01)
    pages.goes.set()
    await asyncio.gather(*many)


@pytest.mark.asyncio
async def test_in_a_busy_process_no_more_are_in_hand_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "ALL_PATIENCE", 0.01)
    monkeypatch.setattr(sharing, "ALL_HELD", 0.01)
    monkeypatch.setattr(sharing, "BUSY_TIMES", 1 << 30)
    pulse = Busy()
    monkeypatch.setattr(sharing, "pulse", pulse)
    pages = Pages()
    application = queue_by_visitor(pages)
    many = [
        asyncio.create_task(application(scope("/", f"visitor {at}"), receive_body, into_the_void))
        for at in range(2 * sharing.ALL_AT_ONCE)
    ]
    async with asyncio.timeout(60):
        while pulse.looks < 100:
            await asyncio.sleep(0.01)
        assert len(pages.inside) == sharing.ALL_AT_ONCE
        pulse.is_still_busy = False
        while len(pages.inside) < len(many):
            await asyncio.sleep(0.01)
    pages.goes.set()
    await asyncio.gather(*many)
