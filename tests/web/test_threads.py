"""How often a request on a server switches to the thread of its view and back."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.test import AsyncClient
from django.urls import reverse

from agentweb import settings as product

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


async def test_the_middleware_of_a_page_goes_there_in_one_go(
    goes: list[str], settings: Any
) -> None:
    settings.MIDDLEWARE = product.MIDDLEWARE
    answer = await AsyncClient().get(reverse("login"))
    assert answer.status_code == 200
    in_one_go = len(goes)
    assert in_one_go <= 6
    goes.clear()
    settings.MIDDLEWARE = product.MIDDLEWARE[:-1]
    await AsyncClient().get(reverse("login"))
    assert len(goes) > in_one_go
