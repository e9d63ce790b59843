"""How often a request on a server switches to the thread of its view and back."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from django.core.handlers.asgi import ASGIHandler
from django.urls import reverse

from agentweb import settings as product
from agentweb.edge.request_threads import PageHandler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def goes(monkeypatch: Any) -> list[str]:
    """Return the list of calls that went to a thread, in order."""
    found: list[str] = []
    go = SyncToAsync.__call__

    async def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(getattr(self.func, "__qualname__", type(self.func).__name__))
        return await go(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    return found


async def test_a_view_and_its_middleware_go_there_in_one_go(goes: list[str], settings: Any) -> None:
    """The others are the signal of the request's beginning (on a server none) and its end."""
    settings.MIDDLEWARE = product.MIDDLEWARE
    assert (await _fetch(PageHandler(), reverse("login")))["status"] == 200
    assert len(goes) <= 2, goes
    goes.clear()
    assert (await _fetch(ASGIHandler(), reverse("login")))["status"] == 200
    assert len(goes) > 6, "Django's own handler would do"


async def _fetch(handler: Any, path: str) -> Any:
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
    }
    client = ApplicationCommunicator(handler, scope)
    await client.send_input({"type": "http.request", "body": b""})
    answer = await client.receive_output(30)
    while (await client.receive_output(30)).get("more_body"):
        pass
    await client.wait(30)
    return answer
